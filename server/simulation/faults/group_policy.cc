#include "server/simulation/faults/group_policy.h"

#include <utility>

#include "server/core/inline_passes.h"

namespace saccade::server::simulation {
namespace {

// How long a thread that submitted a request continues to compute tiny batches of other requests, as in
// ServedModel::Submit().
constexpr absl::Duration kMaxLentTime = absl::Milliseconds(1);
// How many wake-ups go well before a defect shows.
constexpr int64_t kWakeUpsPerDefect = 50;

}  // namespace

GroupPolicy::GroupPolicy(const Options& options, VirtualClock* clock)
    : options_(options),
      group_(options.scheduler, clock, /*report=*/nullptr, this),
      models_(options.models.size()),
      random_(options.seed) {
  for (size_t model = 0; model < models_.size(); ++model) Load(static_cast<int>(model));
}

GroupPolicy::~GroupPolicy() {
  // Before the group.
  models_.clear();
}

void GroupPolicy::Load(int model) {
  const ModelOptions& options = options_.models[model];
  const Devices devices = options.devices.empty() ? Devices(options.instances) : options.devices;
  Model& loaded = models_[model];
  loaded.handle = *Handle::Create(options_.batchers[model], devices, &group_);
  loaded.threads.assign(devices.size(), Thread());
  loaded.ended = 0;
  loaded.lent_until.assign(devices.size(), std::nullopt);
  const Scheduler::ModelId id = loaded.handle->id();
  if (static_cast<size_t>(id) >= by_id_.size()) by_id_.resize(id + 1);
  by_id_[id] = model;
  for (size_t bucket = 0; bucket < options.shapes.size(); ++bucket) {
    const auto number = static_cast<int64_t>(bucket);
    for (const int64_t size : {int64_t{1}, options_.batchers[model].max_batch_size})
      loaded.handle->Learn(number, size, ToDuration(options.Latency(number, size)));
  }
}

void GroupPolicy::Reload(int model) {
  models_[model].handle.reset();
  Load(model);
}

void GroupPolicy::WakeInstance(Scheduler::ModelId id, int instance) {
  const int index = by_id_[id];
  Model& model = models_[index];
  ++wake_ups_;
  const bool now = wake_ups_ % kWakeUpsPerDefect == 0;
  if (now && options_.defect == Defect::kLosesWakeUps) return;
  const auto wake = [&](int woken) {
    Thread& thread = model.threads[woken];
    if (thread.state == Thread::State::kEnded) return;
    thread.signalled = true;
    if (thread.state == Thread::State::kWaits) Run(index, woken, /*was_woken=*/true);
  };
  wake(instance);
  if (now && options_.defect == Defect::kWakesInVain)
    wake((instance + 1) % static_cast<int>(model.threads.size()));
}

void GroupPolicy::WakeTimer() { timer_runs_ |= options_.defect != Defect::kTimerOversleeps; }

void GroupPolicy::Run(int model, int instance, bool was_woken) {
  models_[model].threads[instance].state = Thread::State::kRuns;
  runnable_.push_back({model, instance, was_woken});
}

absl::Status GroupPolicy::Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) {
  Handle& handle = *models_[model].handle;
  const bool lends = !options_.lends.empty() && options_.lends[model];
  const bool limited =
      LimitInlinePasses::Current() == InlinePasses::kNone && options_.defect != Defect::kIgnoresLimits;
  if (!lends || limited) return handle.Submit(task);
  std::optional<Tiny> tiny;
  absl::Status taken = handle.Submit(task, &tiny);
  // The callers' threads differ in whether they may continue (InlinePasses).
  Lend(model, std::move(tiny), random_.Chance(0.5) ? now + kMaxLentTime : absl::InfinitePast());
  return taken;
}

void GroupPolicy::Lend(int model, std::optional<Tiny> tiny, absl::Time until) {
  if (!tiny) return;
  ++tiny_;
  models_[model].lent_until[tiny->instance] = until;
  lent_.push_back(
      {.model = model, .instance = tiny->instance, .tasks = std::move(tiny->tasks), .tiny = true});
}

absl::Status GroupPolicy::Consider(int model, const BatchTask::Traits& traits,
                                   absl::Span<const int64_t> buckets, absl::Time now) {
  if (options_.defect == Defect::kConsidersNothing) return absl::OkStatus();
  if (options_.defect == Defect::kConsidersTooStrictly && traits.deadline < now + absl::Milliseconds(30))
    return absl::DeadlineExceededError("too strict");
  return models_[model].handle->Consider(traits, buckets);
}

void GroupPolicy::Sweep(absl::Time /*now*/) {
  if (options_.defect != Defect::kNeverSweeps) group_.Sweep();
}

std::optional<Policy::Batch> GroupPolicy::Next(absl::Time now) {
  for (;;) {
    if (!lent_.empty()) {
      Batch batch = std::move(lent_.front());
      lent_.pop_front();
      return batch;
    }
    if (!runnable_.empty()) {
      const Runnable runnable = runnable_.front();
      runnable_.pop_front();
      if (auto batch = Take(runnable)) return batch;
    } else if (std::exchange(timer_runs_, false) || now >= timer_at_) {
      timer_at_ = *group_.HandOutDue();
    } else {
      return std::nullopt;
    }
  }
}

std::optional<Policy::Batch> GroupPolicy::Take(const Runnable& runnable) {
  Model& model = models_[runnable.model];
  Thread& thread = model.threads[runnable.instance];
  if (runnable.was_woken) thread.signalled = false;
  std::optional<Handle::Tasks> tasks = model.handle->TryTake(runnable.instance);
  if (!tasks) {
    woken_in_vain_ += runnable.was_woken ? 1 : 0;
    // It was woken while it ran, for a batch that it has found already, so that it does not wait yet.
    if (std::exchange(thread.signalled, false)) return Take({runnable.model, runnable.instance, false});
    thread.state = Thread::State::kWaits;
    return std::nullopt;
  }
  if (tasks->empty()) {
    thread.state = Thread::State::kEnded;
    ++model.ended;
    return std::nullopt;
  }
  return Batch{.model = runnable.model, .instance = runnable.instance, .tasks = *std::move(tasks)};
}

template <typename End>
void GroupPolicy::EndPass(int index, int instance, absl::Time now, const End& end) {
  Model& model = models_[index];
  const std::optional<absl::Time> lent_until = std::exchange(model.lent_until[instance], std::nullopt);
  std::optional<Tiny> next;
  end(*model.handle, lent_until && now < *lent_until ? &next : nullptr);
  if (lent_until) {
    Lend(index, std::move(next), *lent_until);
  } else {
    Run(index, instance, /*was_woken=*/false);
  }
}

void GroupPolicy::Finished(int model, int instance, absl::Time now, bool learn) {
  EndPass(model, instance, now,
          [&](Handle& handle, std::optional<Tiny>* next) { handle.Finished(instance, learn, next); });
}

void GroupPolicy::Failed(int model, int instance, absl::Time now,
                         std::vector<std::unique_ptr<BatchTask>>* tasks) {
  // Requests that were cancelled during the pass are not among `*tasks`, which may be empty.
  EndPass(model, instance, now,
          [&](Handle& handle, std::optional<Tiny>* next) { handle.Failed(instance, tasks, next); });
}

}  // namespace saccade::server::simulation
