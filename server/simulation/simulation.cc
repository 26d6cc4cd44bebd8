#include "server/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace saccade::server::simulation {
namespace {

// If wake_at() is not in the future although there was no batch, the policy is asked again after this time.
constexpr Nanos kAskAgainAfter = 10 * kMicrosecond;

}  // namespace

Simulation::Simulation(const Options& options, SimDevices* device, std::unique_ptr<Policy> policy,
                       Admission* admission, Observer* observer)
    : options_(options),
      device_(device),
      policy_(std::move(policy)),
      admission_(admission),
      observer_(observer),
      ledger_(options.ledger),
      busy_(device->models().size()) {
  for (size_t i = 0; i < options_.streams.size(); ++i) {
    streams_.emplace_back(options_.streams[i], StreamSeed(options_.seed, i));
    next_arrivals_.emplace_back();
  }
}

void Simulation::SetTime(Nanos now) {
  now_ = now;
  if (options_.clock != nullptr) options_.clock->Set(now);
}

Simulation::~Simulation() {
  // Tasks that are still alive would call this simulation from their destructors.
  policy_.reset();
  for (const auto& task : preparing_) {
    if (task != nullptr) task->End();
  }
  for (Running& pass : running_) {
    for (auto& task : pass.tasks) AsSimTask(task).End();
  }
}

void Simulation::At(Nanos when, std::function<void(Nanos)> what) {
  actions_.push_back(std::move(what));
  Schedule(when, Kind::kAction, static_cast<uint32_t>(actions_.size() - 1));
}

void Simulation::Schedule(Nanos at, Kind kind, uint32_t index) {
  events_.push_back({.at = at, .number = scheduled_++, .kind = kind, .index = index});
  std::push_heap(events_.begin(), events_.end(), Later());
}

Nanos Simulation::WakeAt() {
  const Nanos wake = ToNanos(policy_->wake_at());
  if (wake > now_) return wake;
  ++mistakes_.woke_in_vain;
  return now_ + kAskAgainAfter;
}

void Simulation::Run() {
  for (uint32_t stream = 0; stream < streams_.size(); ++stream) ScheduleNext(stream);
  if (options_.sweep_every != kNever) Schedule(options_.sweep_every, Kind::kSweep, 0);
  const Nanos end = options_.until + options_.patience;
  while (true) {
    const Nanos wake = WakeAt();
    if (observer_ != nullptr) observer_->OnSettled(now_, wake);
    const Nanos next = events_.empty() ? kNever : events_.front().at;
    if (std::min(next, wake) > end) break;
    if (next <= wake) {
      std::pop_heap(events_.begin(), events_.end(), Later());
      const Event event = events_.back();
      events_.pop_back();
      SetTime(event.at);
      Handle(event);
    } else {
      SetTime(wake);
    }
    AskForBatches();
  }
  mistakes_.stuck += alive_;
}

void Simulation::Handle(const Event& event) {
  Trace(static_cast<uint64_t>(event.at.count()) * 8 + static_cast<uint64_t>(event.kind));
  switch (event.kind) {
    case Kind::kArrival:
      Arrive(event.index);
      break;
    case Kind::kFinish:
      Finish(event.index);
      break;
    case Kind::kCancel:
      cancellations_[event.index]->Cancel();
      cancellations_[event.index].reset();
      free_cancellations_.push_back(event.index);
      break;
    case Kind::kAction:
      actions_[event.index](now_);
      break;
    case Kind::kPrepared:
      free_preparing_.push_back(event.index);
      Push(std::move(preparing_[event.index]));
      break;
    case Kind::kSweep:
      Sweep();
      break;
  }
}

void Simulation::ScheduleNext(uint32_t stream) {
  next_arrivals_[stream] = streams_[stream].Next();
  Schedule(next_arrivals_[stream].at, Kind::kArrival, stream);
}

void Simulation::Arrive(uint32_t stream) {
  const Arrival arrival = next_arrivals_[stream];
  if (arrival.at >= std::min(options_.until, options_.streams[stream].to)) return;
  if (!options_.streams[stream].one_at_a_time) ScheduleNext(stream);
  Submit(options_.streams[stream], arrival, stream);
}

void Simulation::Submit(const StreamOptions& stream, const Arrival& arrival, uint32_t index) {
  const Ledger::Entry entry = {.stream = static_cast<int>(index),
                               .bucket = arrival.bucket,
                               .client = arrival.client,
                               .arrival = now_,
                               .deadline = now_ + stream.deadline};
  BatchTask::Traits traits;
  traits.size = arrival.size;
  traits.bucket = arrival.bucket;
  traits.priority = stream.priority;
  traits.arrival = ToTime(now_);
  traits.deadline = ToTime(entry.deadline);
  traits.timeout = ToDuration(stream.timeout);
  if (arrival.cancel_at != kNever) {
    auto cancellation = std::make_shared<Cancellation>();
    if (free_cancellations_.empty()) {
      free_cancellations_.push_back(static_cast<uint32_t>(cancellations_.size()));
      cancellations_.emplace_back();
    }
    const uint32_t slot = free_cancellations_.back();
    free_cancellations_.pop_back();
    cancellations_[slot] = cancellation;
    Schedule(arrival.cancel_at, Kind::kCancel, slot);
    traits.cancellation = std::move(cancellation);
  }

  ++alive_;
  SimTask::Watcher* const watcher = this;
  auto sim_task = std::make_unique<SimTask>(std::move(traits), requests_++, stream.model, entry, watcher);
  if (observer_ != nullptr) observer_->OnArrival(*sim_task, now_);
  if (options_.loads == nullptr || options_.loads->IsLoaded(stream.model)) return Begin(std::move(sim_task));
  const SimTask& waiting = *sim_task;
  options_.loads->Await(waiting, [this, task = std::move(sim_task)](const absl::Status& loaded) mutable {
    if (!loaded.ok()) return Refuse(*task, loaded);
    Begin(std::move(task));
    // Several requests may continue at once. The observer is told of each one's batch before the next is
    // pushed.
    AskForBatches();
  });
}

void Simulation::Begin(std::unique_ptr<SimTask> sim_task) {
  const StreamOptions& stream = options_.streams[sim_task->entry().stream];
  absl::Status taken = absl::OkStatus();
  if (admission_ != nullptr) {
    auto ticket = admission_->Admit({.bytes = 1});
    if (ticket.ok()) {
      sim_task->ticket = std::move(*ticket);
    } else {
      taken = ticket.status();
    }
  }
  if (taken.ok() && stream.considered) taken = Consider(stream, *sim_task);
  if (!taken.ok()) return Refuse(*sim_task, taken);
  if (stream.preparation == Nanos()) return Push(std::move(sim_task));
  if (free_preparing_.empty()) {
    free_preparing_.push_back(static_cast<uint32_t>(preparing_.size()));
    preparing_.emplace_back();
  }
  const uint32_t slot = free_preparing_.back();
  free_preparing_.pop_back();
  preparing_[slot] = std::move(sim_task);
  Schedule(now_ + stream.preparation, Kind::kPrepared, slot);
}

absl::Status Simulation::Consider(const StreamOptions& stream, const SimTask& task) {
  const auto shapes = static_cast<int64_t>(device_->models()[stream.model].shapes.size());
  const int64_t buckets[] = {task.bucket(), (task.bucket() + 1) % shapes};
  const absl::Span<const int64_t> asked(buckets, stream.may_turn ? 2 : 1);
  absl::Status said = policy_->Consider(stream.model, task.traits(), asked, ToTime(now_));
  if (observer_ != nullptr) observer_->OnConsidered(task, asked, said, now_);
  return said;
}

void Simulation::Push(std::unique_ptr<SimTask> sim_task) {
  SimTask* const raw = sim_task.get();
  std::unique_ptr<BatchTask> task = std::move(sim_task);
  pushed_ = raw;
  const absl::Status taken = policy_->Push(raw->model(), task, ToTime(now_));
  if (taken.ok()) {
    if (pushed_ != nullptr) NoteTaken(*raw);
  } else {
    pushed_ = nullptr;
    Refuse(*raw, taken);
  }
}

void Simulation::NoteTaken(const SimTask& task) {
  pushed_ = nullptr;
  if (observer_ != nullptr) observer_->OnTaken(task, now_);
}

void Simulation::Refuse(SimTask& task, const absl::Status& why) {
  if (observer_ != nullptr) observer_->OnRefused(task, why, now_);
  End(task, absl::IsCancelled(why) ? Outcome::kCancelled : Outcome::kRefused);
}

void Simulation::Sweep() {
  policy_->Sweep(ToTime(now_));
  if (options_.loads != nullptr) options_.loads->Sweep();
  if (observer_ != nullptr) observer_->OnSwept(now_);
  if (now_ < options_.until || alive_ > 0) Schedule(now_ + options_.sweep_every, Kind::kSweep, 0);
}

void Simulation::AskForBatches() {
  while (true) {
    ++asked_;
    std::optional<Policy::Batch> batch = policy_->Next(ToTime(now_));
    if (!batch) return;
    Start(std::move(*batch));
  }
}

void Simulation::Start(Policy::Batch batch) {
  if (observer_ != nullptr) observer_->OnStart(batch, now_);
  ++batches_;
  const SimDevices::Pass pass = device_->Compute(batch.model, batch.instance, batch.tasks, now_);
  Trace(static_cast<uint64_t>(pass.took.count()));
  for (const auto& task : batch.tasks) Trace(static_cast<uint64_t>(AsSimTask(task).id()));
  if (free_running_.empty()) {
    free_running_.push_back(static_cast<uint32_t>(running_.size()));
    running_.emplace_back();
  }
  const uint32_t slot = free_running_.back();
  free_running_.pop_back();
  running_[slot] = {.model = batch.model,
                    .instance = batch.instance,
                    .began = now_,
                    .ok = pass.ok,
                    .tasks = std::move(batch.tasks)};
  Schedule(now_ + pass.took, Kind::kFinish, slot);
}

void Simulation::Finish(uint32_t pass) {
  Running done = std::move(running_[pass]);
  free_running_.push_back(pass);
  const Nanos from = std::max(done.began, options_.ledger.from);
  busy_[done.model] += std::max(Nanos(), std::min(now_, options_.ledger.to) - from);
  computed_ += static_cast<int64_t>(done.tasks.size());
  if (!done.ok) return Fail(std::move(done));
  for (const auto& task : done.tasks) {
    SimTask& sim_task = AsSimTask(task);
    if (task->cancelled()) {
      End(sim_task, Outcome::kCancelled);
    } else {
      End(sim_task, now_ <= sim_task.entry().deadline ? Outcome::kInTime : Outcome::kLate);
    }
  }
  if (observer_ != nullptr) observer_->OnFinish(done.model, done.instance, now_);
  policy_->Finished(done.model, done.instance, ToTime(now_), /*learn=*/true);
}

void Simulation::Fail(Running done) {
  std::erase_if(done.tasks, [this](const std::unique_ptr<BatchTask>& task) {
    if (!task->cancelled()) return false;
    End(AsSimTask(task), Outcome::kCancelled);
    return true;
  });
  failed_.clear();
  failed_on_ = done.instance;
  for (const auto& task : done.tasks) failed_.push_back(&AsSimTask(task));
  if (observer_ != nullptr) {
    observer_->OnFinish(done.model, done.instance, now_);
    observer_->OnFailed(done.model, done.instance, now_);
  }
  policy_->Failed(done.model, done.instance, ToTime(now_), &done.tasks);
  if (done.tasks.empty() && observer_ != nullptr) {
    for (const SimTask* task : failed_) observer_->OnRetry(*task, failed_on_, now_);
  }
  failed_.clear();
  for (const auto& task : done.tasks) End(AsSimTask(task), Outcome::kFailed);
}

void Simulation::End(SimTask& task, Outcome outcome) {
  if (!task.End()) {
    ++mistakes_.ended_twice;
    return;
  }
  --alive_;
  Trace((static_cast<uint64_t>(task.id()) << 3) + static_cast<uint64_t>(outcome));
  ledger_.Count(task.entry(), outcome, now_);
  if (observer_ != nullptr) observer_->OnEnd(task, outcome, now_);
  const auto stream = static_cast<uint32_t>(task.entry().stream);
  if (!options_.streams[stream].one_at_a_time) return;
  streams_[stream].WaitUntil(now_);
  ScheduleNext(stream);
}

void Simulation::OnRejected(SimTask& task, const absl::Status& why) {
  if (&task == pushed_) NoteTaken(task);
  if (std::erase(failed_, &task) > 0 && observer_ != nullptr) observer_->OnRetry(task, failed_on_, now_);
  End(task, absl::IsCancelled(why) ? Outcome::kCancelled : Outcome::kShed);
}

void Simulation::OnLost(const SimTask& /*task*/) {
  ++mistakes_.lost;
  --alive_;
}

void Simulation::Trace(uint64_t what) {
  trace_hash_ = (trace_hash_ ^ what) * 0x100000001b3;
  trace_hash_ ^= trace_hash_ >> 32;
}

}  // namespace saccade::server::simulation
