// Which loads the catalog begins next, by orders, requests and retries, and how they end. Loads of models
// whose kind was measured run beside each other; all others run alone, and so do trials of threads, which
// begin while no load is wanted.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/catalog/catalog.h"
#include "server/catalog/load_plan.h"
#include "server/logging/log.h"
#include "server/repository/stamps.h"

namespace saccade::server {
namespace {

// Maximum number of steps that begin loads in one turn of the thread. Orders that end at once could otherwise
// keep all else waiting.
constexpr int kMaxSteps = 64;

}  // namespace

bool Catalog::IsLoading(const std::string& name) const {
  return loading_.count(name) > 0 || (next_ && next_->name == name);
}

void Catalog::StartLoads() {
  if (std::exchange(applied_here_, false)) ResumeServed();
  for (int step = 0; step < kMaxSteps; ++step) {
    if (refusing()) return;
    if (!next_) {
      next_waits_ = false;
      if (!running_.MayBegin(/*alone=*/false)) return;
      if (!PickNext()) return TryThreadsAgain();
      continue;
    }
    if (next_waits_) return;
    switch (BeginNext()) {
      case Begun::kBeside:
        break;
      case Begun::kAlone:
        // Orders and the deadlines of unloads have their turn before the next load.
        return;
      case Begun::kWaits:
        next_waits_ = true;
        return;
    }
  }
  again_ = true;
}

bool Catalog::PickNext() {
  if (PickRetry()) return true;
  return requests_first_ ? PickWanted() || PickOrder() : PickOrder() || PickWanted();
}

bool Catalog::PickRetry() {
  const absl::Time now = clock_->Now();
  const auto due = std::find_if(retries_.begin(), retries_.end(), [&](const auto& retry) {
    return retry.second.at <= now && !IsLoading(retry.first);
  });
  if (due == retries_.end()) return false;
  const std::string name = due->first;
  const std::string repository = due->second.repository;
  next_.emplace(Loading{
      .repository = repository,
      .name = name,
      .ended = [this, repository, name](const absl::Status& loaded) { PlanRetry(repository, name, loaded); },
      .is_retry = true});
  return true;
}

bool Catalog::PickOrder() {
  std::optional<Job> job = TakeOrder(/*is_load=*/true);
  if (!job) return false;
  requests_first_ = true;
  // An order of the same model may have waited for this one.
  again_ = true;
  // A job that has failed answers when it is destroyed. The others are not delayed by it.
  Try([&] { (*std::move(job))(absl::OkStatus()); });
  return true;
}

bool Catalog::PickWanted() {
  const auto name = load_queue_->MostWanted();
  if (!name) return false;
  requests_first_ = false;
  if (!table_.IsCold(*name)) {
    // Loaded meanwhile, as part of an ensemble or by an order.
    load_queue_->Loaded(*name, absl::ZeroDuration());
    return true;
  }
  Choose({.name = *name, .ended = [this, name = *name](const absl::Status& loaded) {
            if (loaded.ok()) return;
            if (table_.IsCold(name)) {
              load_queue_->Failed(name, loaded);
            } else {
              // Another version serves.
              load_queue_->Loaded(name, absl::ZeroDuration());
            }
          }});
  return true;
}

void Catalog::Choose(Loading loading) {
  const auto repository = RepositoryOf(loading.name);
  if (!repository.ok()) return std::move(loading.ended)(repository.status());
  loading.repository = *repository;
  loading.call = CurrentLogCall();
  next_.emplace(std::move(loading));
}

Catalog::Begun Catalog::BeginNext() {
  if (!running_.MayBegin(/*alone=*/false)) {
    next_->give_up = absl::InfiniteFuture();
    return Begun::kWaits;
  }
  Loading loading = *std::move(next_);
  next_.reset();
  LoadStart start;
  Try([&] {
    LoadStart planned = PlanStart(loading);
    TakeRoom(loading, planned);
    start = std::move(planned);
  });
  switch (start.how) {
    case LoadStart::kWaits:
      next_.emplace(std::move(loading));
      return Begun::kWaits;
    case LoadStart::kAlone:
      LoadAlone(std::move(loading));
      return Begun::kAlone;
    case LoadStart::kBeside:
      BeginBeside(std::move(loading), start.plan, start.bytes);
      return Begun::kBeside;
    case LoadStart::kNothing:
      EndAtOnce(std::move(loading));
      return Begun::kBeside;
    case LoadStart::kUnknown:
      break;
  }
  absl::Status failed = FailureWithoutText();
  Try([&] { failed = absl::ResourceExhaustedError("it could not be begun; the log says why"); });
  Report(std::move(loading), failed);
  return Begun::kBeside;
}

Catalog::LoadStart Catalog::PlanStart(Loading& loading) {
  // Read only now, since they may have changed while the load waited. So may config.pbtxt, in whose place an
  // earlier order's configuration is then no longer used.
  if (!loading.is_ordered) loading.config_json = OrderedConfig(loading.name);
  loading.files = Read(loading.repository, loading.name, loading.config_json);
  const auto& [stamp, entry] = loading.files;
  loading.was_hosted = host_.IsHosted(loading.name);
  if (LoadsNothing(loading)) return {.how = LoadStart::kNothing};
  const bool alone = !stamp.ok() || !host_.CanLoadAhead(*entry);
  if (alone && !running_.MayBegin(/*alone=*/true)) return {.how = LoadStart::kWaits};
  LoadStart start = {.how = alone ? LoadStart::kAlone : LoadStart::kBeside};
  if (!stamp.ok()) return start;
  start.bytes = host_.ExpectedBytes(*entry, *stamp, IsAnew(loading.name, loading.config_json));
  if (alone && start.bytes == 0) return start;
  const int64_t max = options_.max_model_bytes;
  // Models that were unloaded and are still in use are freed soon, so no other is unloaded for their memory,
  // until the load has waited for it in vain: see HasRoom().
  const int64_t hosted = host_.MemoryHosted();
  const bool is_late = IsRoomLate(loading.give_up);
  const int64_t held = hosted + (is_late ? host_.MemoryLeaving() : 0);
  const bool fits = max == 0 || held + running_.reserved() + start.bytes <= max;
  std::vector<LoadedModel> others = fits ? std::vector<LoadedModel>() : LoadedModels();
  std::erase_if(others, [&](const LoadedModel& other) { return other.name == loading.name; });
  start.plan = PlanLoad(running_, others, held, start.bytes, max, alone);
  if (is_late && !start.plan.ok() && PlanUnloads(std::move(others), hosted, start.bytes, max).ok()) {
    start.how = LoadStart::kBeside;
    start.plan = StillHeld(start.bytes);
  }
  if (start.plan.ok() && start.plan->waits) start.how = LoadStart::kWaits;
  return start;
}

void Catalog::TakeRoom(Loading& loading, LoadStart& start) {
  if (start.how == LoadStart::kWaits) {
    // A load that runs ends first.
    loading.give_up = absl::InfiniteFuture();
    return;
  }
  if (start.how != LoadStart::kAlone && start.how != LoadStart::kBeside) return;
  if (!start.plan.ok()) return;
  UnloadFor(loading, *start.plan);
  if (HasRoom(loading.name, start.bytes)) return;
  // Models that were unloaded just now have their own time to end.
  if (!start.plan->unload.empty()) loading.give_up = absl::InfiniteFuture();
  loading.give_up = std::min(loading.give_up, RoomDeadline());
  if (clock_->Now() < loading.give_up) {
    start.how = LoadStart::kWaits;
    return;
  }
  start.how = LoadStart::kBeside;
  start.plan = StillHeld(start.bytes);
}

void Catalog::UnloadFor(const Loading& loading, const LoadPlan& plan) {
  if (plan.unload.empty()) return;
  const LogCallScope scope(loading.call);
  for (const std::string& other : plan.unload) UnloadIdle(other, "its memory is needed");
  ReportChanges();
}

bool Catalog::LoadsNothing(const Loading& loading) const {
  const auto& [stamp, entry] = loading.files;
  if (!entry.ok()) return true;
  // An ensemble may need models that are not loaded.
  return stamp.ok() && entry->settings.ensemble.empty() &&
         host_.IsUnchanged(*entry, *stamp, IsAnew(loading.name, loading.config_json));
}

void Catalog::EndAtOnce(Loading loading) {
  const LogCallScope scope(std::move(loading.call));
  absl::Status ended = FailureWithoutText();
  Try([&] {
    ended = Note(loading.repository, loading.name, loading.files);
    if (ended.ok()) ended = Host(loading.name, std::move(loading.files), std::nullopt, {});
  });
  Report(std::move(loading), ended);
}

void Catalog::BeginBeside(Loading loading, const absl::StatusOr<LoadPlan>& plan, int64_t bytes) {
  const LogCallScope scope(loading.call);
  const std::string name = loading.name;
  absl::Status refused = Note(loading.repository, name, loading.files);
  if (refused.ok() && !plan.ok()) {
    ReportUnavailable(name, plan.status());
    // What serves goes on.
    if (host_.IsHosted(name)) {
      const auto& [stamp, entry] = loading.files;
      host_.NoteFailures(*entry, stamp.ok() ? *stamp : ModelStamp(), IsAnew(name, loading.config_json),
                         plan.status());
    }
    refused =
        absl::Status(plan.status().code(), absl::StrCat("model '", name, "': ", plan.status().message()));
  }
  if (!refused.ok()) return Report(std::move(loading), refused);
  // Whatever fails from here on, EndLoad() follows.
  Loading& begun = loading_.insert_or_assign(name, std::move(loading)).first->second;
  begun.start = clock_->Now();
  running_.Begin(name, bytes, /*alone=*/false);
  load_queue_->Begin(name);
  host_.ListLoading(*begun.files.entry);
  int64_t skipped_bytes = 0;
  host_.LoadAhead(*begun.files.entry, *begun.files.stamp, &skipped_bytes);
  if (!host_.HasEndedAhead(name)) return;
  absl::MutexLock lock(&orders_->mutex);
  orders_->load_ended = true;
}

void Catalog::LoadAlone(Loading loading) {
  const LogCallScope scope(std::move(loading.call));
  loading.start = clock_->Now();
  absl::Status loaded = FailureWithoutText();
  Try([&] {
    running_.Begin(loading.name, 0, /*alone=*/true);
    load_queue_->Begin(loading.name, /*alone=*/true);
    loaded = Apply(loading.repository, loading.name, std::move(loading.files), loading.config_json, {}, 0);
  });
  running_.End(loading.name);
  Report(std::move(loading), loaded);
}

void Catalog::TryThreadsAgain() {
  if (thread_trials_.empty() || !running_.MayBegin(/*alone=*/true)) return;
  ModelHost::ThreadTrial trial = std::move(thread_trials_.front());
  thread_trials_.pop_front();
  // Whatever comes of this step, orders and requests have their turn before the next one.
  again_ = true;
  const auto repository = applied_from_.find(trial.model);
  if (repository == applied_from_.end()) return;
  const auto stamp = StampModel(repository->second, trial.model);
  const std::string name = trial.model;
  Try([&] {
    running_.Begin(name, 0, /*alone=*/true);
    load_queue_->Begin(name, /*alone=*/true);
    if (host_.TryThreads(stamp.ok() ? *stamp : ModelStamp(), &trial)) {
      thread_trials_.push_front(std::move(trial));
    } else {
      // With more instances the model may hold more than before.
      MakeRoom(name, 0).IgnoreError();
    }
  });
  running_.End(name);
  Try([&] { ReportChanges(); });
  load_queue_->End(name);
}

void Catalog::EndLoads() {
  std::vector<std::string> ended;
  Try([&] {
    for (const auto& [name, loading] : loading_) {
      if (host_.HasEndedAhead(name)) ended.push_back(name);
    }
  });
  for (const std::string& name : ended) EndLoad(name);
}

void Catalog::AwaitLoads() {
  while (!loading_.empty()) EndLoad(loading_.begin()->first);
}

void Catalog::EndLoad(const std::string& name) {
  auto ended = loading_.extract(name);
  if (ended.empty()) return;
  Loading loading = std::move(ended.mapped());
  running_.End(loading.name);
  const LogCallScope scope(std::move(loading.call));
  absl::Status loaded = FailureWithoutText();
  Try([&] { loaded = Host(loading.name, std::move(loading.files), loading.config_json, {}); });
  Try([&] { host_.DropAhead(loading.name); });
  Report(std::move(loading), loaded);
}

void Catalog::Report(Loading loading, const absl::Status& loaded) {
  next_waits_ = false;
  again_ = true;
  // The health changes first: a client that is told of the load's end may ask for it at once.
  Try([&] { ReportChanges(); });
  Try([&] {
    if (!loaded.ok()) return;
    // How long a model that was hosted already took says nothing of how long it takes otherwise.
    const absl::Duration took = loading.was_hosted ? absl::ZeroDuration() : clock_->Now() - loading.start;
    load_queue_->Loaded(loading.name, took);
  });
  // A retry would load the files of the repository over a configuration that came with this load.
  Try([&] {
    if (loaded.ok()) StopRetrying(loading.name);
  });
  Try([&] { std::move(loading.ended)(loaded); });
  load_queue_->End(loading.name);
}

void Catalog::RejectNext() {
  if (!next_) return;
  Loading loading = *std::move(next_);
  next_.reset();
  std::move(loading.ended)(Closing());
}

absl::Time Catalog::NextRetry() const {
  absl::Time next = absl::InfiniteFuture();
  // While nothing can begin, the end of a load wakes the thread.
  if (refusing() || next_ || !running_.MayBegin(/*alone=*/false)) return next;
  for (const auto& [name, retry] : retries_) {
    if (!IsLoading(name)) next = std::min(next, retry.at);
  }
  return next;
}

}  // namespace saccade::server
