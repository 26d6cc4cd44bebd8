#include "server/simulation/faults/virtual_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server::simulation {
namespace {

// How often to check whether the last instances of an unloaded model have ended, before it is loaded again.
constexpr Nanos kCheckFreed = 10 * kMillisecond;

}  // namespace

VirtualCatalog::VirtualCatalog(const OnDemand& options, Defect defect, uint64_t seed, VirtualClock* clock,
                               Hooks hooks)
    : options_(options),
      defect_(defect),
      clock_(clock),
      hooks_(std::move(hooks)),
      random_(seed),
      queue_({.max_waiting_per_model = options.max_waiting, .max_loads = options.max_loads}, clock,
             [this] {
               if (defect_ != Defect::kCatalogSleeps) WakeAt(Now());
             }),
      running_(options.max_loads) {
  for (size_t i = 0; i < options.bytes.size(); ++i) models_.push_back({.name = absl::StrCat(i)});
}

Nanos VirtualCatalog::LastUsed(int model) const {
  return std::max(models_[model].loaded_at, hooks_.last_pass(model));
}

std::vector<LoadedModel> VirtualCatalog::Loaded(int except) const {
  std::vector<LoadedModel> loaded;
  for (size_t i = 0; i < models_.size(); ++i) {
    const auto model = static_cast<int>(i);
    if (!models_[i].is_loaded || model == except) continue;
    loaded.push_back({models_[i].name, options_.bytes[i], ToTime(LastUsed(model)), healed_});
  }
  return loaded;
}

int64_t VirtualCatalog::Held() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < models_.size(); ++i) bytes += models_[i].is_loaded ? options_.bytes[i] : 0;
  return bytes;
}

void VirtualCatalog::Await(const SimTask& task, Resume resume) {
  CallHead head;
  head.model = models_[task.model()].name;
  head.client = absl::StrCat(task.entry().client);
  head.deadline = task.deadline();
  head.cancellation = std::const_pointer_cast<Cancellation>(task.traits().cancellation);
  waiting_[task.id()] = {task.entry().deadline, Now(), head.cancellation};
  queue_.Await(head, [this, id = task.id(), model = task.model(),
                      resume = std::move(resume)](const absl::Status& status) mutable {
    if (waiting_.erase(id) == 0) hooks_.violated(absl::StrCat("request ", id, " ends its wait twice"));
    if (status.ok() && !models_[model].is_loaded)
      hooks_.violated(absl::StrCat("request ", id, " continues, and its model is not loaded"));
    std::move(resume)(status);
  });
}

void VirtualCatalog::Sweep() {
  if (defect_ != Defect::kForgetsWaiters) queue_.Sweep();
  const Nanos now = Now();
  for (const auto& [id, waiting] : waiting_) {
    const bool is_cancelled = waiting.cancellation != nullptr && waiting.cancellation->cancelled();
    if (is_cancelled || waiting.deadline <= now || now - waiting.since >= Nanos(LoadQueueOptions().max_wait))
      hooks_.violated(absl::StrCat("request ", id, " waits for its model, and is cancelled or late"));
  }
  if (ThreadLoads() || closed_) return;
  if (turn_at_ > now && !next_ && loading_.size() < options_.max_loads && queue_.MostWanted())
    hooks_.violated(absl::StrCat("model ", *queue_.MostWanted(), " is wanted, and nothing loads it"));
  if (turn_at_ > now && next_ && loading_.empty())
    hooks_.violated(absl::StrCat("model ", *next_, " waits to be loaded, and no other load runs"));
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!healed_ && models_[i].is_loaded && LastUsed(static_cast<int>(i)) + options_.idle_unload < now)
      hooks_.violated(absl::StrCat("model ", i, " is idle, and stays loaded"));
  }
}

void VirtualCatalog::Heal() {
  healed_ = true;
  WakeAt(Now());
}

void VirtualCatalog::Close() {
  closed_ = true;
  queue_.Close(absl::UnavailableError("the server is shutting down"));
}

void VirtualCatalog::WakeAt(Nanos when) {
  if (when >= turn_at_) return;
  turn_at_ = when;
  hooks_.at(when, [this](Nanos now) {
    // An earlier turn was planned after this one.
    if (now != turn_at_) return;
    turn_at_ = kNever;
    Turn();
  });
}

void VirtualCatalog::Turn() {
  if (ThreadLoads() || closed_) return;
  if (!healed_ && defect_ != Defect::kNeverUnloads) UnloadIdle();
  LoadWanted();
  for (size_t i = 0; healed_ && !next_ && i < models_.size(); ++i) {
    const auto model = static_cast<int>(i);
    if (models_[i].is_loaded || running_.IsRunning(models_[i].name)) continue;
    if (running_.MayBegin(IsAlone(model))) BeginLoad(model, /*is_wanted=*/false);
  }
}

bool VirtualCatalog::IsAlone(int model) const {
  if (defect_ == Defect::kMeasuresBesideOthers) return false;
  return measured_.count(options_.kinds[model]) == 0;
}

bool VirtualCatalog::ThreadLoads() const {
  return std::any_of(loading_.begin(), loading_.end(), [](const auto& load) { return load.second; });
}

void VirtualCatalog::UnloadIdle() {
  const Nanos idle_unload =
      defect_ == Defect::kUnloadsTooEarly ? options_.idle_unload / 2 : options_.idle_unload;
  const IdlePlan plan = PlanIdle(Loaded(), ToDuration(idle_unload), clock_->Now());
  for (const std::string& name : plan.unload) {
    const int model = IndexOf(name);
    if (LastUsed(model) + options_.idle_unload > Now())
      hooks_.violated(absl::StrCat("model ", name, " is not idle, and was unloaded"));
    Unload(model);
  }
  // Without ensembles nothing follows an unloaded model.
  if (plan.unload.empty()) {
    if (plan.next != absl::InfiniteFuture()) WakeAt(ToNanos(plan.next));
  } else {
    UnloadIdle();
  }
}

void VirtualCatalog::LoadWanted() {
  for (;;) {
    if (!next_) {
      const auto name = running_.MayBegin(/*alone=*/false) ? queue_.MostWanted() : std::nullopt;
      if (!name) return;
      if (models_[IndexOf(*name)].is_loaded) {
        queue_.Loaded(*name, absl::ZeroDuration());
        continue;
      }
      next_ = IndexOf(*name);
    }
    const int model = *next_;
    const auto plan = Plan(model);
    if (plan.ok() && plan->waits) return;
    next_.reset();
    if (!plan.ok()) {
      queue_.Failed(models_[model].name, plan.status());
      continue;
    }
    UnloadFor(model, plan->unload);
    BeginLoad(model, /*is_wanted=*/true);
  }
}

absl::StatusOr<LoadPlan> VirtualCatalog::Plan(int model) {
  const int64_t bytes = options_.bytes[model];
  const bool alone = IsAlone(model);
  if (defect_ == Defect::kIgnoresMemory) return PlanLoad(running_, {}, 0, 0, 0, alone);
  std::vector<LoadedModel> others = Loaded(model);
  auto plan = PlanLoad(running_, others, Held(), bytes, MaxBytes(), alone);
  const bool unloads = plan.ok() && !plan->unload.empty();
  if (defect_ == Defect::kUnloadsTheNewest && unloads) {
    plan->unload = {std::max_element(others.begin(), others.end(), [](const auto& a, const auto& b) {
                      return a.last_used < b.last_used;
                    })->name};
  }
  return plan;
}

void VirtualCatalog::UnloadFor(int model, const std::vector<std::string>& unload) {
  for (const std::string& name : unload) {
    const int unloaded = IndexOf(name);
    if (Held() + running_.reserved() + options_.bytes[model] <= MaxBytes())
      hooks_.violated(absl::StrCat("model ", name, " was unloaded although there is room"));
    for (const LoadedModel& other : Loaded(model)) {
      if (other.last_used < ToTime(LastUsed(unloaded)))
        hooks_.violated(
            absl::StrCat("model ", name, " was unloaded, and ", other.name, " was used before it"));
    }
    Unload(unloaded);
  }
}

void VirtualCatalog::Unload(int model) {
  models_[model].is_loaded = false;
  hooks_.close(model);
}

void VirtualCatalog::CheckBegin(int model, bool alone) {
  if (loading_.count(model) > 0 || models_[model].is_loaded)
    hooks_.violated(absl::StrCat("model ", model, " is loaded twice"));
  if (loading_.size() >= options_.max_loads)
    hooks_.violated(absl::StrCat(loading_.size(), " loads run, of at most ", options_.max_loads));
  if (ThreadLoads() || (alone && !loading_.empty()))
    hooks_.violated(absl::StrCat("model ", model, " is loaded beside one that is measured, or is measured"));
  int64_t held = Held() + options_.bytes[model];
  for (const auto& [other, is_alone] : loading_) held += options_.bytes[other];
  if (MaxBytes() > 0 && held > MaxBytes())
    hooks_.violated(
        absl::StrCat("the models and the loads that run hold ", held, " bytes, of at most ", MaxBytes()));
}

void VirtualCatalog::BeginLoad(int model, bool is_wanted) {
  const std::string& name = models_[model].name;
  CheckBegin(model, measured_.count(options_.kinds[model]) == 0);
  const bool alone = IsAlone(model);
  loading_[model] = alone;
  running_.Begin(name, defect_ == Defect::kForgetsRunningLoads ? 0 : options_.bytes[model], alone);
  if (defect_ == Defect::kResumesTooEarly) queue_.Loaded(name, absl::ZeroDuration());
  queue_.Begin(name, alone);
  const Nanos began = Now();
  const Nanos took = options_.load_time[model] * (0.5 + random_.Uniform());
  hooks_.at(began + took.Whole(),
            [this, model, is_wanted, began](Nanos) { EndLoad(model, is_wanted, began); });
}

void VirtualCatalog::EndLoad(int model, bool is_wanted, Nanos began) {
  if (!hooks_.is_freed(model)) {
    hooks_.at(Now() + kCheckFreed,
              [this, model, is_wanted, began](Nanos) { EndLoad(model, is_wanted, began); });
    return;
  }
  Model& loaded = models_[model];
  loading_.erase(model);
  running_.End(loaded.name);
  if (closed_) return;
  if (!healed_ && random_.Chance(options_.load_error)) {
    queue_.Failed(loaded.name, absl::InternalError("the load failed"));
  } else {
    ++loads_;
    if (options_.kinds[model] != OnDemand::kNoKind) measured_.insert(options_.kinds[model]);
    hooks_.load(model);
    loaded.is_loaded = true;
    loaded.loaded_at = Now();
    if (MaxBytes() > 0 && Held() > MaxBytes())
      hooks_.violated(absl::StrCat("the models hold ", Held(), " bytes, of at most ", MaxBytes()));
    const int64_t tiny = hooks_.tiny();
    queue_.Loaded(loaded.name, is_wanted ? ToDuration(Now() - began) : absl::ZeroDuration());
    if (hooks_.tiny() != tiny)
      hooks_.violated("the catalog's thread computes the passes of requests that waited");
  }
  WakeAt(Now());
}

}  // namespace saccade::server::simulation
