#include "server/catalog/catalog.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/logging/log.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;

// Maximum number of pending loads and unloads. Each holds a name and at most a configuration.
constexpr size_t kMaxOrders = 64;
// Maximum nesting depth of ensembles.
constexpr int kMaxDepth = 8;

absl::Status NotControlled() {
  return absl::FailedPreconditionError(
      "models cannot be loaded or unloaded by request; start the daemon with "
      "--model-control-mode=explicit");
}

}  // namespace

Catalog::Catalog(CatalogOptions options, Clock* clock, Metrics* metrics)
    : options_(std::move(options)), clock_(clock), host_(HostOptions(), &table_, clock, metrics) {}

Catalog::~Catalog() { Close(); }

ModelHost::Options Catalog::HostOptions() const {
  return {.default_max_queue_size = options_.default_max_queue_size,
          .threads_per_instance = options_.threads_per_instance,
          .warm_up = options_.warm_up,
          .allow_executable_models = options_.allow_executable_models,
          .gpus = options_.gpus,
          .rooms = options_.rooms,
          .released =
              [orders = orders_] {
                absl::MutexLock lock(&orders->mutex);
                orders->released = true;
              },
          .closed = [this] { return closed(); }};
}

bool Catalog::closed() const {
  absl::MutexLock lock(&orders_->mutex);
  return orders_->closed;
}

absl::Status Catalog::Scan() {
  std::map<std::string, std::string> found_in;
  for (const std::string& repository : options_.repositories) {
    const auto names = ListModels(repository);
    if (!names.ok()) return names.status();
    settling_[repository];
    for (const std::string& name : *names) {
      if (found_in.emplace(name, repository).second) {
        names_[repository].insert(name);
        continue;
      }
      return absl::AlreadyExistsError(absl::StrCat("model '", absl::CHexEscape(name),
                                                   "' is in more than one --model-repository; keep one of "
                                                   "them"));
    }
  }
  if (options_.control == ModelControl::kExplicit) {
    for (const std::string& name : options_.load_at_start) {
      if (name == "*" || found_in.count(name) > 0) continue;
      return absl::NotFoundError(absl::StrCat("--load-model names '", absl::CHexEscape(name),
                                              "', which is in no --model-repository"));
    }
  }
  for (const auto& [name, repository] : found_in) {
    const std::string shown = absl::CHexEscape(name);
    if (IsWanted(name)) {
      table_.Require(shown);
    } else {
      table_.SetModel(shown, State::kUnavailable, kNotLoaded);
    }
  }
  return absl::OkStatus();
}

bool Catalog::IsWanted(const std::string& name) const {
  const auto& asked = options_.load_at_start;
  return options_.control != ModelControl::kExplicit ||
         std::any_of(asked.begin(), asked.end(),
                     [&](const std::string& one) { return one == "*" || one == name; });
}

void Catalog::Start(Events events) {
  events_ = std::move(events);
  thread_ = std::thread([this] { Run(); });
}

void Catalog::Load(const std::string& name, std::optional<std::string> config_json, Done done) {
  absl::Status refused = CheckModelName(name);
  if (refused.ok() && options_.control != ModelControl::kExplicit) refused = NotControlled();
  if (!refused.ok()) return std::move(done)(refused);
  Order(
      [this, name, config = std::move(config_json), done = std::move(done)](absl::Status cancelled) mutable {
        std::move(done)(cancelled.ok() ? LoadByName(name, config, 0) : cancelled);
      });
}

void Catalog::Unload(const std::string& name, bool with_dependents, Done done) {
  absl::Status refused = CheckModelName(name);
  if (refused.ok() && options_.control != ModelControl::kExplicit) refused = NotControlled();
  if (!refused.ok()) return std::move(done)(refused);
  Order([this, name, with_dependents, done = std::move(done)](absl::Status cancelled) mutable {
    if (!cancelled.ok()) return std::move(done)(cancelled);
    DoUnload(name, with_dependents, std::move(done));
  });
}

void Catalog::Order(Job job) {
  // The thread that runs the job logs under the call that ordered it.
  job = [call = CurrentLogCall(), job = std::move(job)](absl::Status cancelled) mutable {
    const LogCallScope scope(std::move(call));
    std::move(job)(std::move(cancelled));
  };
  absl::Status refused;
  {
    absl::MutexLock lock(&orders_->mutex);
    if (orders_->closed) {
      refused = absl::UnavailableError("the daemon is shutting down");
    } else if (orders_->jobs.size() >= kMaxOrders) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          kMaxOrders, " requests to load or unload models are already pending; try again later"));
    } else {
      orders_->jobs.push_back(std::move(job));
    }
  }
  if (!refused.ok()) std::move(job)(refused);
}

void Catalog::Run() {
  pthread_setname_np(pthread_self(), "catalog");
  LoadAtStart();
  absl::Time next_look = clock_->Now() + options_.poll_interval;
  const bool looks = options_.control != ModelControl::kNone;
  for (;;) {
    std::deque<Job> jobs;
    {
      absl::MutexLock lock(&orders_->mutex);
      Orders* const orders = orders_.get();
      const auto is_something = [orders] {
        orders->mutex.AssertHeld();
        return !orders->jobs.empty() || orders->closed || orders->released;
      };
      const absl::Time wake = std::min(looks ? next_look : absl::InfiniteFuture(), host_.NextDeadline());
      clock_->AwaitUntil(&orders->mutex, absl::Condition(&is_something), wake);
      if (orders->closed) return;
      jobs.swap(orders->jobs);
      orders->released = false;
    }
    host_.FreeUnused();
    for (Job& job : jobs) {
      std::move(job)(closed() ? absl::UnavailableError("the daemon is shutting down") : absl::OkStatus());
      TellChanges();
    }
    if (looks && clock_->Now() >= next_look && !closed()) {
      Look();
      next_look = clock_->Now() + options_.poll_interval;
    }
    host_.TellLate(clock_->Now());
  }
}

void Catalog::LoadAtStart() {
  absl::Status first;
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const auto& [repository, names] : names_) {
    for (const std::string& name : names)
      if (IsWanted(name)) wanted.emplace_back(name, repository);
  }
  std::sort(wanted.begin(), wanted.end());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (closed()) return;
    const auto& [name, repository] = wanted[i];
    // Already loaded as part of an ensemble.
    if (host_.IsHosted(name)) continue;
    first.Update(Apply(repository, name, std::nullopt, {i + 1, wanted.size()}, 0));
    TellChanges();
  }
  if (events_.loaded && !closed()) events_.loaded(first);
}

absl::StatusOr<std::string> Catalog::RepositoryOf(const std::string& name) const {
  std::vector<std::string> found;
  for (const std::string& repository : options_.repositories) {
    const auto names = ListModels(repository);
    if (!names.ok()) continue;
    if (std::find(names->begin(), names->end(), name) != names->end()) found.push_back(repository);
  }
  if (found.size() == 1) return found[0];
  if (found.empty())
    return absl::NotFoundError(absl::StrCat("the model repository holds no folder '", name, "'"));
  return absl::FailedPreconditionError(
      absl::StrCat("model '", name, "' is in more than one --model-repository; keep one of them"));
}

absl::Status Catalog::Apply(const std::string& repository, const std::string& name,
                            const std::optional<std::string>& config_json, ModelHost::Progress progress,
                            int depth) {
  // Taken before the model is read: later changes are found by the next scan.
  const auto stamp = StampModel(repository, name);
  if (stamp.ok()) settling_[repository].Applied(name, *stamp);
  applied_from_[name] = repository;
  auto entry =
      ReadModel(repository, name, {.complete = options_.complete_configurations, .config_json = config_json});
  if (!entry.ok()) {
    const std::string shown = absl::CHexEscape(name);
    const std::string reason(entry.status().message());
    table_.SetModel(shown, State::kUnavailable, reason);
    Log(LogLevel::kError, "model unavailable", {{"model", shown}, {"reason", reason}});
    return absl::FailedPreconditionError(absl::StrCat("model '", shown, "': ", reason));
  }
  absl::Status parts = LoadParts(entry->settings, depth);
  if (!parts.ok()) {
    table_.SetModel(name, State::kUnavailable, std::string(parts.message()));
    Log(LogLevel::kError, "model unavailable", {{"model", name}, {"reason", std::string(parts.message())}});
    return parts;
  }
  // A configuration from a request applies until the model is loaded without one.
  const bool anew = config_json.has_value() || overridden_.count(name) > 0;
  absl::Status applied = host_.Apply(*std::move(entry), stamp.ok() ? *stamp : ModelStamp(), anew, progress);
  if (config_json) {
    overridden_.insert(name);
  } else if (applied.ok()) {
    overridden_.erase(name);
  }
  return applied;
}

absl::Status Catalog::LoadByName(const std::string& name, const std::optional<std::string>& config_json,
                                 int depth) {
  const auto repository = RepositoryOf(name);
  if (!repository.ok()) return repository.status();
  return Apply(*repository, name, config_json, {}, depth);
}

// Loads the models of an ensemble's steps before the ensemble itself.
absl::Status Catalog::LoadParts(const ModelSettings& settings, int depth) {
  for (const EnsembleStep& step : settings.ensemble) {
    if (host_.IsHosted(step.model)) continue;
    if (depth > kMaxDepth) {
      return absl::FailedPreconditionError(absl::StrCat(
          "model '", settings.name, "': ensembles are nested deeper than ", kMaxDepth, ", or form a cycle"));
    }
    if (absl::Status part = LoadByName(step.model, std::nullopt, depth + 1); !part.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("model '", settings.name, "' needs another model: ", part.message()));
    }
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
  auto together = std::make_shared<Together>(Together{std::move(done), absl::OkStatus(), names.size()});
  const absl::Time deadline = clock_->Now() + options_.unload_timeout;
  for (const std::string& one : names) {
    overridden_.erase(one);
    Log(LogLevel::kInfo, "unloading model", {{"model", one}});
    host_.Dismiss(one, /*listed=*/true, deadline, [together](absl::Status status) {
      together->first.Update(status);
      if (--together->left == 0) std::move(together->done)(together->first);
    });
  }
}

void Catalog::TellChanges() {
  if (!events_.model_changed) return;
  std::map<std::string, bool> now;
  for (const IndexEntry& line : table_.Index()) now[line.name] |= line.state == State::kReady;
  for (const auto& [name, ready] : told_) {
    if (ready && now.count(name) == 0) events_.model_changed(name, false);
  }
  for (const auto& [name, ready] : now) {
    const auto told = told_.find(name);
    if (told == told_.end() || told->second != ready) events_.model_changed(name, ready);
  }
  told_ = std::move(now);
}

void Catalog::Close() {
  std::deque<Job> left;
  {
    absl::MutexLock lock(&orders_->mutex);
    orders_->closed = true;
    left.swap(orders_->jobs);
  }
  for (Job& job : left) std::move(job)(absl::UnavailableError("the daemon is shutting down"));
  if (thread_.joinable()) thread_.join();
  host_.Close();
}

}  // namespace saccade::server
