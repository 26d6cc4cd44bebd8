// The catalog's loads and unloads of single models, with the models of an ensemble's steps.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/catalog.h"
#include "server/logging/log.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {
namespace {

// Maximum nesting depth of ensembles.
constexpr int kMaxDepth = 8;
constexpr char kUnloaded[] = "unloaded";

}  // namespace

absl::StatusOr<std::string> Catalog::RepositoryOf(const std::string& name) const {
  std::vector<std::string> found;
  for (const std::string& repository : options_.repositories) {
    if (HoldsModel(repository, name)) found.push_back(repository);
  }
  if (found.size() == 1) return found[0];
  if (found.empty())
    return absl::NotFoundError(absl::StrCat("the model repository holds no folder '", name, "'"));
  return absl::FailedPreconditionError(
      absl::StrCat("model '", name, "' is in more than one --model-repository; keep one of them"));
}

Catalog::ReadFiles Catalog::Read(const std::string& repository, const std::string& name,
                                 const std::optional<std::string>& config_json) const {
  // The stamp is taken first: later changes are found by the next scan.
  auto stamp = StampModel(repository, name);
  auto entry =
      ReadModel(repository, name, {.complete = options_.complete_configurations, .config_json = config_json});
  if (stamp.ok() && entry.ok()) promotions_.Adjust(*stamp, &*entry);
  return {std::move(stamp), std::move(entry)};
}

absl::Status Catalog::Apply(const std::string& repository, const std::string& name,
                            const std::optional<std::string>& config_json, ModelHost::Progress progress,
                            int depth) {
  return Apply(repository, name, Read(repository, name, config_json), config_json, progress, depth);
}

absl::Status Catalog::Apply(const std::string& repository, const std::string& name, ReadFiles files,
                            const std::optional<std::string>& config_json, ModelHost::Progress progress,
                            int depth) {
  if (depth == 0) AwaitLoads();
  applied_here_ = true;
  if (absl::Status read = Note(repository, name, files); !read.ok()) return read;
  if (absl::Status parts = LoadParts(files.entry->settings, depth); !parts.ok()) {
    ReportUnavailable(name, parts);
    return parts;
  }
  const ModelStamp stamp = files.stamp.ok() ? *files.stamp : ModelStamp();
  const bool anew = IsAnew(name, config_json);
  const int64_t bytes = host_.ExpectedBytes(*files.entry, stamp, anew);
  absl::Status room = MakeRoom(name, bytes);
  if (room.ok()) room = AwaitRoom(name, bytes);
  if (!room.ok()) {
    if (refusing()) return room;
    ReportUnavailable(name, room);
    // What serves goes on.
    if (host_.IsHosted(name)) host_.NoteFailures(*files.entry, stamp, anew, room);
    return absl::Status(room.code(), absl::StrCat("model '", name, "': ", room.message()));
  }
  return Host(name, std::move(files), config_json, progress);
}

absl::Status Catalog::Note(const std::string& repository, const std::string& name, const ReadFiles& files) {
  if (files.stamp.ok()) settling_[repository].Applied(name, *files.stamp);
  applied_from_[name] = repository;
  if (files.entry.ok()) return absl::OkStatus();
  const std::string shown = absl::CHexEscape(name);
  ReportUnavailable(shown, files.entry.status());
  return absl::FailedPreconditionError(absl::StrCat("model '", shown, "': ", files.entry.status().message()));
}

void Catalog::ReportUnavailable(const std::string& name, const absl::Status& why) {
  const std::string reason(why.message());
  table_.SetModel(name, ModelSnapshot::State::kUnavailable, reason);
  Log(LogLevel::kError, "model unavailable", {{"model", name}, {"reason", reason}});
}

std::optional<std::string> Catalog::OrderedConfig(const std::string& name) const {
  const auto found = overridden_.find(name);
  const auto from = applied_from_.find(name);
  if (found == overridden_.end() || !found->second || from == applied_from_.end()) return std::nullopt;
  const auto stamp = StampModel(from->second, name);
  if (!stamp.ok() || stamp->shared != found->second->shared_stamp) return std::nullopt;
  return found->second->config_json;
}

absl::Status Catalog::Host(const std::string& name, ReadFiles files,
                           const std::optional<std::string>& config_json, ModelHost::Progress progress) {
  auto& [stamp, entry] = files;
  const bool anew = IsAnew(name, config_json);
  const std::optional<ShadowRule> rule = entry->settings.shadow;
  absl::Status applied = host_.Apply(*std::move(entry), stamp.ok() ? *stamp : ModelStamp(), anew, progress);
  // A shadow version that fails to load leaves the earlier one in its place, which is compared further.
  if (rule && rule->promote && stamp.ok() && host_.IsLoadedFrom(name, rule->version, *stamp))
    tried_files_[name] = *stamp;
  if (config_json) {
    std::optional<Ordered>& ordered = overridden_[name];
    if (applied.ok()) ordered = Ordered{*config_json, stamp.ok() ? stamp->shared : ""};
  } else if (applied.ok()) {
    overridden_.erase(name);
  }
  // The model may hold more than was expected.
  MakeRoom(name, 0).IgnoreError();
  if (applied.ok() && options_.load_on_demand && !IsWanted(name)) table_.SetOnDemand(name, true);
  return applied;
}

absl::Status Catalog::LoadByName(const std::string& name, int depth) {
  const auto repository = RepositoryOf(name);
  if (!repository.ok()) return repository.status();
  return Apply(*repository, name, OrderedConfig(name), {}, depth);
}

// Loads the models of an ensemble's steps before the ensemble itself.
absl::Status Catalog::LoadParts(const ModelSettings& settings, int depth) {
  // None of them makes room for another.
  for (const EnsembleStep& step : settings.ensemble) parts_in_load_.insert(step.model);
  const absl::Cleanup let_go = [&] {
    for (const EnsembleStep& step : settings.ensemble) parts_in_load_.erase(parts_in_load_.find(step.model));
  };
  for (const EnsembleStep& step : settings.ensemble) {
    if (host_.IsHosted(step.model)) continue;
    if (depth > kMaxDepth) {
      return absl::FailedPreconditionError(absl::StrCat(
          "model '", settings.name, "': ensembles are nested deeper than ", kMaxDepth, ", or form a cycle"));
    }
    if (absl::Status part = LoadByName(step.model, depth + 1); !part.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("model '", settings.name, "' needs another model: ", part.message()));
    }
    load_queue_->EndAtStart(step.model);
  }
  return absl::OkStatus();
}

std::vector<std::string> Catalog::WithDependents(const std::string& name) const {
  std::vector<std::string> all = {name};
  for (const std::string& part : host_.PartsOf(name)) {
    bool needed = false;
    for (const std::string& other : host_.Hosted()) {
      const std::vector<std::string> parts = host_.PartsOf(other);
      needed |= other != name && std::find(parts.begin(), parts.end(), part) != parts.end();
    }
    if (!needed && std::find(all.begin(), all.end(), part) == all.end()) all.push_back(part);
  }
  return all;
}

void Catalog::DoUnload(const std::string& name, bool with_dependents, Done done) {
  if (!table_.IsKnown(name)) {
    return std::move(done)(absl::NotFoundError(absl::StrCat("no model '", name, "' is loaded")));
  }
  // Calls `done` once all of the models have been dismissed.
  struct Together {
    Done done;
    absl::Status first;
    size_t left;
  };
  const std::vector<std::string> names =
      with_dependents ? WithDependents(name) : std::vector<std::string>{name};
  // One more than there are models: `done` is not called before the health tells it.
  auto together = std::make_shared<Together>(Together{std::move(done), absl::OkStatus(), names.size() + 1});
  const auto end_one = [together](const absl::Status& status) {
    together->first.Update(status);
    if (--together->left == 0) std::move(together->done)(together->first);
  };
  const absl::Time deadline = clock_->Now() + options_.unload_timeout;
  for (const std::string& one : names) {
    // A part of an ensemble may be loaded at the moment.
    EndLoad(one);
    overridden_.erase(one);
    StopRetrying(one);
    // A model that was unloaded by order stays so.
    table_.SetOnDemand(one, false);
    load_queue_->Forget(one, absl::UnavailableError(absl::StrCat("model '", one, "' was unloaded")));
    Log(LogLevel::kInfo, "unloading model", {{"model", one}});
    host_.Dismiss(one, kUnloaded, deadline, end_one);
  }
  ReportChanges();
  end_one(absl::OkStatus());
}

}  // namespace saccade::server
