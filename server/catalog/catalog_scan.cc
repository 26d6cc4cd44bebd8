// The catalog's scans of its repositories for models that were changed, added or removed.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/catalog/catalog.h"
#include "server/logging/log.h"
#include "server/repository/stamps.h"

namespace saccade::server {

void Catalog::RescanAll() {
  for (const std::string& repository : options_.repositories) Rescan(repository);
  ReportChanges();
  Log(LogLevel::kDebug, "scanned the repositories", {{"models", table_.Index().size()}});
}

void Catalog::Rescan(const std::string& repository) {
  const auto names = ListModels(repository);
  Settling& settling = settling_[repository];
  // An unmounted volume appears as an empty or missing folder. Loaded models do not need it.
  if (!names.ok() || (names->empty() && !settling.empty())) {
    if (vanished_.insert(repository).second) {
      Log(LogLevel::kError, "model repository cannot be read; loaded models continue to serve",
          {{"repository", repository},
           {"reason", names.ok() ? "it is empty" : std::string(names.status().message())}});
    } else if (names.ok() && options_.control == ModelControl::kPoll) {
      RemoveMoved(repository);
    }
    return;
  }
  if (vanished_.erase(repository) > 0)
    Log(LogLevel::kInfo, "model repository can be read again", {{"repository", repository}});
  if (options_.control == ModelControl::kExplicit) {
    for (const std::string& name : *names) {
      const std::string shown = absl::CHexEscape(name);
      if (table_.IsKnown(shown)) continue;
      table_.SetModel(shown, ModelSnapshot::State::kUnavailable, NotLoaded());
      if (options_.load_on_demand) table_.SetOnDemand(shown, true);
    }
    return;
  }
  Settling::Stamps seen;
  for (const std::string& name : *names) {
    const auto stamp = StampModel(repository, name);
    // A name that is not a valid model name, or cannot be read, has an empty stamp until that changes.
    seen[name] = stamp.ok() ? *stamp : ModelStamp();
  }
  const std::vector<std::string> changed = settling.Look(seen);
  // A model that has left must not begin to serve afterwards.
  if (!changed.empty()) AwaitLoads();
  for (size_t i = 0; i < changed.size() && !refusing(); ++i) {
    const std::string& name = changed[i];
    const auto from = applied_from_.find(name);
    const bool is_from_another = from != applied_from_.end() && from->second != repository;
    if (seen.count(name) == 0) {
      settling.Forget(name);
      if (!is_from_another) Remove(name);
      continue;
    }
    if (is_from_another) {
      settling.Applied(name, seen[name]);
      Log(LogLevel::kError, "model is in more than one --model-repository; serving the first one found",
          {{"model", absl::CHexEscape(name)}, {"repository", from->second}});
      continue;
    }
    settling.Applied(name, seen[name]);
    // The failure is logged and in the index. Attempts at the earlier files are over.
    StopRetrying(name);
    // The change counts as applied, so a failure must not be lost, whatever it is.
    absl::Status applied = FailureWithoutText();
    Guard([&] { applied = Apply(repository, name, std::nullopt, {i + 1, changed.size()}, 0); });
    PlanRetry(repository, name, applied);
  }
}

void Catalog::RemoveMoved(const std::string& repository) {
  std::set<std::string> moved;
  for (const std::string& other : options_.repositories) {
    if (other == repository) continue;
    const auto names = ListModels(other);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const auto from = applied_from_.find(name);
      if (from != applied_from_.end() && from->second == repository) moved.insert(name);
    }
  }
  if (!moved.empty()) AwaitLoads();
  for (const std::string& name : moved) Remove(name);
}

void Catalog::Remove(const std::string& name) {
  Log(LogLevel::kInfo, "model was removed from the repository; unloading it",
      {{"model", absl::CHexEscape(name)}});
  applied_from_.erase(name);
  // Another repository may have the model now. The next scans load it from there.
  for (auto& [repository, settling] : settling_) settling.Forget(name);
  StopRetrying(name);
  host_.Dismiss(absl::CHexEscape(name), /*listed_as=*/std::nullopt, absl::InfiniteFuture(),
                [](const absl::Status&) {});
}

}  // namespace saccade::server
