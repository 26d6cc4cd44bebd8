#include "server/simulation/faults/invariants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server::simulation {
namespace {

// An estimate is stale if its bucket had no pass for this many times the estimated time of a pass.
constexpr int kProbeAfter = 2;
// Lower bounds of the scheduler's estimates, as shares of the true times. Faults that slow passes down lower
// the bound: a slow pass raises the estimate of its batch size, and the correction afterwards lowers those of
// other sizes.
constexpr double kMisled = 0.2;
constexpr double kEstimated = 0.95;

// An instance whose pass failed may take no work for so long.
constexpr Nanos kMaxPause = 61 * kSecond;

// The daemon's limits of tiny batches (batching/device_group.cc).
constexpr Nanos kHandOffCost = 120 * kMicrosecond;
constexpr Nanos kMaxTinyPass = kMillisecond;

// A sweep leaves out a queue that was swept within so long before.
constexpr Nanos kSweptLately = kMillisecond;

// An idle model may reject a request as late only if it has less time left than so many times its pass.
constexpr double kAmple = 1.5;
// The share of the requests of which Consider() may wrongly predict that they are accepted, if they are
// pushed at once, and how many in any case: a request counts as load only when it is pushed.
constexpr double kMaxForetoldWrongly = 0.02;
constexpr int64_t kFewForetoldWrongly = 20;

constexpr size_t kMaxViolations = 5;
// A request without a deadline is ordered as if it were due this long after its arrival.
constexpr Nanos kUsualPatience = 30 * kSecond;
// A pass that has run for longer no longer counts for the cores it holds.
constexpr Nanos kLongPass = kSecond;
// Tolerance for estimated times, which are rounded to nanoseconds in several places.
constexpr Nanos kTolerance = kMicrosecond;

}  // namespace

Invariants::Invariants(const Scenario& scenario, const GroupPolicy* policy)
    : scenario_(scenario), policy_(policy), always_fits_(scenario.AlwaysFits()) {
  for (const ModelOptions& options : scenario.models) {
    Model& model = models_.emplace_back();
    model.buckets.resize(options.shapes.size());
    model.began.assign(options.instances, kNever);
    model.excused_until.assign(options.instances, Nanos());
  }
}

template <typename... Parts>
void Invariants::Violated(Nanos now, const Parts&... parts) {
  if (violations_.size() >= kMaxViolations) return;
  violations_.push_back(absl::StrCat("at ", ToMilliseconds(now), " ms: ", parts...));
}

int64_t Invariants::ClassOf(const SimTask& task) const {
  const BatcherOptions& options = scenario_.batchers[task.model()];
  if (options.priority_levels > 0 && task.priority() == 0) return options.default_priority_level;
  return -int64_t{task.priority()};
}

const QueuePolicy& Invariants::PolicyOf(const SimTask& task) const {
  const BatcherOptions& options = scenario_.batchers[task.model()];
  const auto found = options.level_policies.find(static_cast<int>(ClassOf(task)));
  return found == options.level_policies.end() ? options.default_policy : found->second;
}

Invariants::Position Invariants::PositionOf(const SimTask& task) const {
  const Ledger::Entry& entry = task.entry();
  return {.priority_class = ClassOf(task),
          .deadline = entry.deadline == kNever ? entry.arrival + kUsualPatience : entry.deadline,
          .arrival = entry.arrival,
          .id = task.id(),
          .task = &task};
}

bool Invariants::TimedOut(const SimTask& task, Nanos now) const {
  const QueuePolicy& policy = PolicyOf(task);
  absl::Duration timeout = policy.timeout;
  if (policy.allow_timeout_override) timeout = std::min(timeout, task.timeout());
  return ToTime(now) - task.arrival() >= timeout;
}

bool Invariants::Alive(const SimTask& task, Nanos now) const {
  return !task.cancelled() && now < task.entry().deadline && !TimedOut(task, now);
}

void Invariants::OnTaken(const SimTask& task, Nanos now) {
  Model& model = models_[task.model()];
  if (model.closed) Violated(now, "request ", task.id(), " was taken by a closed model");
  Bucket& bucket = model.buckets[task.bucket()];
  bucket.waiting.insert(PositionOf(task));
  bucket.pictures += task.size();
  model.pictures += task.size();
  const int64_t of_class = ++model.classes[ClassOf(task)];
  const int64_t max_of_class = PolicyOf(task).max_queue_size;
  if (scenario_.plain_order && max_of_class > 0 && of_class > max_of_class)
    Violated(now, of_class, " requests of class ", ClassOf(task), " wait, of at most ", max_of_class);
  const BatcherOptions& options = scenario_.batchers[task.model()];
  if (model.pictures > options.max_queue_size)
    Violated(now, model.pictures, " pictures wait, of at most ", options.max_queue_size);
}

void Invariants::OnConsidered(const SimTask& task, absl::Span<const int64_t> buckets,
                              const absl::Status& said, Nanos now) {
  ++considered_;
  const Model& model = models_[task.model()];
  if (!said.ok()) {
    // OnRefused() follows.
    CheckRefusal(task, /*size=*/1, buckets, said, now);
    return;
  }
  if (model.closed) Violated(now, "request ", task.id(), " was not rejected by a closed model");
  const StreamOptions& stream = scenario_.streams[task.entry().stream];
  if (stream.preparation != Nanos() || task.size() != 1 || buckets.size() != 1) return;
  // It may have waited for its model until it was cancelled or late, which only Push() looks at.
  if (!Alive(task, now)) return;
  ++foretold_;
  foretold_id_ = task.id();
}

bool Invariants::IsFull(const SimTask& task, int64_t size) const {
  const Model& model = models_[task.model()];
  if (model.pictures + size > scenario_.batchers[task.model()].max_queue_size) return true;
  const int64_t max_of_class = PolicyOf(task).max_queue_size;
  const auto of_class = model.classes.find(ClassOf(task));
  return max_of_class > 0 && of_class != model.classes.end() && of_class->second >= max_of_class;
}

void Invariants::CheckRefusal(const SimTask& task, int64_t size, absl::Span<const int64_t> buckets,
                              const absl::Status& why, Nanos now) {
  const bool is_late = absl::IsDeadlineExceeded(why);
  if (!is_late && !absl::IsResourceExhausted(why)) return;
  // Where timed-out requests are delayed, they change their class.
  if (!scenario_.plain_order || IsFull(task, size)) return;
  const Nanos deadline = task.entry().deadline;
  if (deadline == kNever) {
    Violated(now, "request ", task.id(), " has no deadline, and was rejected: ", why.ToString());
    return;
  }
  const Model& model = models_[task.model()];
  if (scenario_.faults.misleads() || model.pictures + model.retried > 0 || !CouldBegin(task.model(), now))
    return;
  Nanos takes = kNever;
  for (const int64_t bucket : buckets)
    takes = std::min(takes, scenario_.models[task.model()].Latency(bucket, size));
  takes *= kAmple * (1 + 3 * scenario_.jitter);
  if (deadline - now > takes + kTolerance)
    Violated(now, "request ", task.id(), " has ", ToMilliseconds(deadline - now),
             " ms left, and was rejected by an idle model: ", why.ToString());
}

void Invariants::OnRefused(const SimTask& task, const absl::Status& why, Nanos now) {
  if (task.id() == foretold_id_) ++foretold_wrongly_;
  const Model& model = models_[task.model()];
  const bool draining = now >= scenario_.drain_at;
  if (now >= scenario_.healed_at && !draining) last_refusal_ = why.ToString();
  switch (why.code()) {
    case absl::StatusCode::kUnavailable:
      if (!model.closed && !draining) Violated(now, "refused while open: ", why.ToString());
      return;
    case absl::StatusCode::kInvalidArgument:
      if (task.size() <= scenario_.batchers[task.model()].max_batch_size)
        Violated(now, "a sound request was refused: ", why.ToString());
      return;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
      return;
    case absl::StatusCode::kCancelled:
      if (!task.cancelled()) Violated(now, "refused as cancelled, but was not");
      return;
    default:
      Violated(now, "refused with an unexpected status: ", why.ToString());
  }
}

void Invariants::Forget(const SimTask& task) {
  Model& model = models_[task.model()];
  if (const auto found = retried_.find(task.id()); found != retried_.end()) {
    if (std::exchange(found->second.waits, false)) model.retried -= task.size();
    return;
  }
  Bucket& bucket = model.buckets[task.bucket()];
  if (bucket.waiting.erase(PositionOf(task)) == 0) return;
  bucket.pictures -= task.size();
  model.pictures -= task.size();
  --model.classes[ClassOf(task)];
}

void Invariants::OnStart(const Policy::Batch& batch, Nanos now) {
  CheckInstance(batch, now);
  if (batch.tasks.empty()) {
    Violated(now, "an empty batch");
    return;
  }
  const bool retry = CheckRetry(batch, now);
  for (const auto& task : batch.tasks) Forget(AsSimTask(task));
  CheckMembers(batch, now);
  if (scenario_.plain_order && !retry) CheckOrder(batch, now);
  if (batch.tiny) CheckTiny(batch, now);
}

bool Invariants::CheckRetry(const Policy::Batch& batch, Nanos now) {
  size_t retried = 0;
  for (const auto& task : batch.tasks) {
    const auto found = retried_.find(AsSimTask(task).id());
    if (found == retried_.end()) continue;
    ++retried;
    if (!found->second.waits) Violated(now, "request ", found->first, " is computed a third time");
    if (found->second.failed_on == batch.instance)
      Violated(now, "request ", found->first, " is retried where it failed");
  }
  if (retried != 0 && retried != batch.tasks.size())
    Violated(now, "a retry shares a batch with other requests");
  return retried != 0;
}

void Invariants::CheckTiny(const Policy::Batch& batch, Nanos now) {
  int64_t pictures = 0;
  for (const auto& task : batch.tasks) pictures += task->size();
  const int64_t bucket = batch.tasks.front()->bucket();
  if (!scenario_.lends[batch.model]) Violated(now, "a tiny batch of a model that lends no threads");
  const Nanos max = std::min(static_cast<double>(batch.tasks.size()) * kHandOffCost, kMaxTinyPass);
  const double trusted = scenario_.faults.misleads() ? kMisled : kEstimated - 3 * scenario_.jitter;
  const Nanos takes = scenario_.models[batch.model].Latency(bucket, pictures);
  const auto [last_pass, known] = std::pair(models_[batch.model].buckets.at(bucket).last_pass,
                                            models_[batch.model].buckets.at(bucket).known);
  // The scheduler may occasionally probe whether passes still take as long as estimated.
  if (known && takes * trusted > max + kTolerance && now - last_pass < kProbeAfter * takes * trusted)
    Violated(now, "a pass of ", ToMilliseconds(takes),
             " ms runs on the thread that brought a request, of at most ", ToMilliseconds(max), " ms");
}

void Invariants::OnSwept(Nanos now) {
  absl::btree_set<int64_t> cancelled;
  for (const Model& model : models_) {
    if (model.pictures == 0) continue;
    for (const Bucket& bucket : model.buckets) {
      for (const Position& position : bucket.waiting) {
        const SimTask& task = *position.task;
        if (task.cancelled()) cancelled.insert(position.id);
        if (cancelled_.count(position.id) > 0 || now > task.entry().deadline + kSweptLately)
          Violated(now, "request ", position.id, " is cancelled or late, and waits after a sweep");
      }
    }
  }
  cancelled_ = std::move(cancelled);
}

void Invariants::OnFailed(int model, int instance, Nanos now) {
  models_[model].excused_until[instance] = now + kMaxPause;
}

void Invariants::OnRetry(const SimTask& task, int failed_on, Nanos now) {
  Model& model = models_[task.model()];
  if (model.began.size() == 1) Violated(now, "a retry of a model with one instance");
  if (!retried_.emplace(task.id(), Retried{.failed_on = failed_on}).second)
    Violated(now, "request ", task.id(), " is retried a second time");
  model.retried += task.size();
}

void Invariants::CheckInstance(const Policy::Batch& batch, Nanos now) {
  Model& model = models_[batch.model];
  const auto instances = static_cast<int>(model.began.size());
  if (batch.instance < 0 || batch.instance >= instances) {
    Violated(now, "there is no instance ", batch.instance);
    return;
  }
  if (model.began[batch.instance] != kNever)
    Violated(now, "instance ", batch.instance, " has a batch already");
  CheckCores(batch, now);
  model.began[batch.instance] = now;
  model.last_pass = now;
  ++model.computing;
  ++computing_[scenario_.models[batch.model].DeviceOf(batch.instance)];
}

void Invariants::CheckCores(const Policy::Batch& batch, Nanos now) {
  const int device = scenario_.models[batch.model].DeviceOf(batch.instance);
  int held = 0;
  for (size_t i = 0; i < models_.size(); ++i) {
    for (size_t instance = 0; instance < models_[i].began.size(); ++instance) {
      const Nanos began = models_[i].began[instance];
      if (began == kNever || now - began >= kLongPass) continue;
      if (scenario_.models[i].DeviceOf(static_cast<int>(instance)) == device)
        held += scenario_.batchers[i].threads;
    }
  }
  const int cores = scenario_.scheduler.cores;
  const int threads = scenario_.batchers[batch.model].threads;
  if (held > 0 && held + threads > cores)
    Violated(now, "passes hold ", held, " of ", cores, " cores, and one more of ", threads, " began");
}

void Invariants::CheckMembers(const Policy::Batch& batch, Nanos now) {
  int64_t pictures = 0;
  for (const auto& task : batch.tasks) pictures += task->size();
  const BatcherOptions& options = scenario_.batchers[batch.model];
  if (pictures < 1 || pictures > options.max_batch_size)
    Violated(now, "a batch of ", pictures, ", of at most ", options.max_batch_size);
  const int64_t bucket = batch.tasks.front()->bucket();
  // Without misleading faults, no estimate is below the time of the fastest pass.
  const double trusted = scenario_.faults.misleads() ? kMisled : kEstimated - 3 * scenario_.jitter;
  const Nanos min = (scenario_.models[batch.model].Latency(bucket, pictures) * trusted).Whole();
  const auto [last_pass, known] = std::pair(models_[batch.model].buckets.at(bucket).last_pass,
                                            models_[batch.model].buckets.at(bucket).known);
  for (const auto& task : batch.tasks) {
    const SimTask& sim_task = AsSimTask(task);
    const Nanos deadline = sim_task.entry().deadline;
    if (task->bucket() != bucket) Violated(now, "a batch of several buckets");
    if (sim_task.model() != batch.model) Violated(now, "a batch with another model's request");
    if (task->cancelled()) Violated(now, "request ", sim_task.id(), " was cancelled, and is computed");
    // The scheduler may occasionally probe whether passes still take as long as estimated.
    if (known && deadline != kNever && now + min > deadline + kTolerance &&
        now - last_pass < kProbeAfter * min)
      Violated(now, "request ", sim_task.id(),
               " starts although it cannot end in time: ", ToMilliseconds(deadline - now),
               " ms are left of at least ", ToMilliseconds(min), ", ", ToMilliseconds(now - last_pass),
               " ms after the last pass");
    // A retry has waited for an instance before.
    if (scenario_.plain_order && TimedOut(sim_task, now) && retried_.count(sim_task.id()) == 0)
      Violated(now, "request ", sim_task.id(), " has timed out, and is computed");
    if (sim_task.entry().arrival > scenario_.drain_at)
      Violated(now, "request ", sim_task.id(), " came during the drain, and is computed");
  }
}

void Invariants::CheckOrder(const Policy::Batch& batch, Nanos now) {
  const SimTask& first = AsSimTask(batch.tasks.front());
  const Position position = PositionOf(first);
  for (size_t i = 1; i < batch.tasks.size(); ++i) {
    if (PositionOf(AsSimTask(batch.tasks[i])) < PositionOf(AsSimTask(batch.tasks[i - 1])))
      Violated(now, "a batch out of order");
  }
  // Dead requests are not passed over either: they leave the queue first.
  const auto& waiting = models_[batch.model].buckets[first.bucket()].waiting;
  for (auto it = waiting.begin(); it != waiting.end() && *it < position; ++it) {
    if (!Alive(*it->task, now)) continue;
    passed_over_.push_back({batch.model, first.bucket(), *it, first.id()});
    return;
  }
}

void Invariants::OnFinish(int model, int instance, Nanos now) {
  models_[model].began[instance] = kNever;
  --models_[model].computing;
  --computing_[scenario_.models[model].DeviceOf(instance)];
  last_finish_ = now;
}

void Invariants::OnEnd(const SimTask& task, Outcome outcome, Nanos now) {
  Forget(task);
  if (outcome == Outcome::kInTime || outcome == Outcome::kLate) {
    Bucket& bucket = models_[task.model()].buckets.at(task.bucket());
    bucket.known = true;
    bucket.last_pass = now;
  }
  retried_.erase(task.id());
  ++ended_;
  const bool healing = static_cast<size_t>(task.entry().stream) >= scenario_.healing_streams_from;
  const Nanos half = scenario_.healed_at + ((scenario_.drain_at - scenario_.healed_at) / 2).Whole();
  if (healing && task.entry().arrival >= half && task.entry().arrival < scenario_.drain_at)
    healed_.Add(outcome);
}

void Invariants::OnSettled(Nanos now, Nanos wake) {
  for (const auto& [model, bucket, position, by] : passed_over_) {
    if (models_[model].buckets[bucket].waiting.contains(position))
      Violated(now, "request ", by, " started before ", position.id, ", which goes first");
  }
  passed_over_.clear();
  for (size_t i = 0; i < models_.size(); ++i) {
    const Model& model = models_[i];
    if (policy_->queued(static_cast<int>(i)) != model.pictures + model.retried)
      Violated(now, policy_->queued(static_cast<int>(i)), " pictures are said to wait, and ",
               model.pictures + model.retried, " do");
    if (model.closed && model.computing == 0 && model.pictures + model.retried == 0 &&
        !policy_->Ended(static_cast<int>(i)))
      Violated(now, "threads of a drained model wait");
    if (model.pictures > 0 && CouldBegin(static_cast<int>(i), now))
      CheckWaiting(static_cast<int>(i), now, wake);
  }
}

// True if an instance of the model is idle and the cores that it needs are free.
bool Invariants::CouldBegin(int index, Nanos now) const {
  const std::vector<Nanos>& began = models_[index].began;
  for (size_t instance = 0; instance < began.size(); ++instance) {
    if (began[instance] != kNever || now < models_[index].excused_until[instance]) continue;
    const auto computing = computing_.find(scenario_.models[index].DeviceOf(static_cast<int>(instance)));
    if (always_fits_ || computing == computing_.end() || computing->second == 0) return true;
  }
  return false;
}

// REQUIRES: CouldBegin(index).
void Invariants::CheckWaiting(int index, Nanos now, Nanos wake) {
  const BatcherOptions& options = scenario_.batchers[index];
  const Model& model = models_[index];
  for (const Bucket& bucket : model.buckets) {
    int64_t pictures = 0;
    for (const Position& position : bucket.waiting) {
      if (!Alive(*position.task, now)) continue;
      pictures += position.task->size();
      if (model.closed || ToTime(now) - position.task->arrival() >= options.max_queue_delay) {
        Violated(now, "request ", position.id, " is due, and an instance idle");
        return;
      }
      if (wake > position.deadline)
        Violated(now, "request ", position.id, " is forgotten until after its deadline");
    }
    if (pictures >= options.max_batch_size) Violated(now, "a full batch waits, and an instance is idle");
  }
}

void Invariants::CheckEnd(int64_t requests, const Simulation::Mistakes& mistakes, const Inflight& inflight) {
  const Nanos end = scenario_.drain_at;
  if (mistakes.total() > 0)
    Violated(end, mistakes.lost, " requests were lost, ", mistakes.ended_twice, " ended twice, ",
             mistakes.stuck, " never ended; woken in vain ", mistakes.woke_in_vain, " times");
  if (policy_->woken_in_vain() > 0)
    Violated(end, "instances were woken in vain ", policy_->woken_in_vain(), " times");
  if (static_cast<double>(foretold_wrongly_) >
      kFewForetoldWrongly + kMaxForetoldWrongly * static_cast<double>(foretold_))
    Violated(end, foretold_wrongly_, " of ", foretold_,
             " requests were rejected that had just been accepted");
  if (ended_ != requests) Violated(end, ended_, " of ", requests, " requests ended");
  if (inflight.requests != 0 || inflight.bytes != 0)
    Violated(end, inflight.requests, " requests hold credit although nothing is there");
  if (healed_.Share(Outcome::kInTime) < 0.5)
    Violated(end, "only ", healed_[Outcome::kInTime], " of ", healed_.total(),
             " were in time when all had healed; the last refusal: ", last_refusal_);
  Nanos longest = {};
  for (size_t i = scenario_.healing_streams_from; i < scenario_.streams.size(); ++i) {
    const StreamOptions& stream = scenario_.streams[i];
    const auto max = static_cast<double>(scenario_.batchers[stream.model].max_batch_size);
    const Nanos pass = scenario_.models[stream.model].latency(max) * 1.3;
    longest = std::max(longest, stream.deadline + pass);
  }
  if (last_finish_ > scenario_.drain_at + longest)
    Violated(end, "the drain took ", ToMilliseconds(last_finish_ - scenario_.drain_at), " ms");
}

}  // namespace saccade::server::simulation
