#include "server/batching/model_queue.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_target.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// Where a request without a deadline stands among those that have one.
constexpr int64_t kUsualPatience = 30'000 * kMillisecond;
// How far behind its deadline a request may be expected to end when it comes. Not 1: what waits may yet be
// shed or cancelled, and batches grow under load.
constexpr double kHope = 1.6;
// Where so many times more wait than a batch may take that leaves time for the next, there are too many,
// whatever the rate says: it is slow to see a burst.
constexpr double kCrowd = 1.25;
// A bucket waits for company at most so many times as long as the pass takes that it waits for.
constexpr double kLongestWait = 0.25;
// How often a queue is looked through for what was cancelled. Between, only its head is.
constexpr int64_t kSweepEvery = 5 * kMillisecond;
// How often targets are found anew.
constexpr int64_t kRetargetEvery = kMillisecond;
constexpr int64_t kRetargetPushes = 16;
// Buckets whose history is kept although nothing waits in them.
constexpr size_t kMostBuckets = 256;
// The same of levels of priority: clients may name as many as they like.
constexpr size_t kMostLevels = 32;
// How long an arrival counts in what its level's share of the load is.
constexpr double kLevelMemory = 500e6;
// An estimate that keeps everybody out is doubted after so many times as long as a pass takes. What that
// costs where it is right is a pass for nothing now and then.
constexpr double kDoubtAfter = 10;
// How long after a batch for which there was no memory larger ones are not tried again.
constexpr int64_t kNarrowFor = 30'000 * kMillisecond;
constexpr double kUsualWeight = 0.2;
constexpr double kPatienceWeight = 1.0 / 32;

int64_t Saturated(int64_t time, double more) {
  const double sum = static_cast<double>(time) + more;
  return sum >= 9e18 ? kNever : time + static_cast<int64_t>(more);
}

absl::Duration Nanos(double time) { return absl::Nanoseconds(static_cast<int64_t>(time)); }

absl::Status TooLate(double takes, int64_t left) {
  return absl::DeadlineExceededError(absl::StrCat(
      "the request cannot be answered in time: a pass takes about ", absl::FormatDuration(Nanos(takes)),
      ", and ", absl::FormatDuration(absl::Nanoseconds(left)), " are left; give it a later deadline"));
}

}  // namespace

ModelQueue::ModelQueue(const BatcherOptions& options) : options_(options) {}

void ModelQueue::Learn(int64_t bucket, int64_t size, std::optional<double> took, int64_t now) {
  Bucket& known = Find(bucket, now);
  known.learned = now;
  if (took && *took > 0) known.latency.Learn(size, *took);
}

void ModelQueue::NoRoomFor(int64_t bucket, int64_t size, int64_t now) {
  Bucket& narrow = Find(bucket, now);
  narrow.fits = std::max<int64_t>(1, size / 2);
  narrow.fits_until = now + kNarrowFor;
}

Bucket& ModelQueue::Find(int64_t id, int64_t now) {
  std::unique_ptr<Bucket>& bucket = buckets_[id];
  if (bucket == nullptr) {
    bucket = std::make_unique<Bucket>(id, options_.max_batch_size);
    bucket->used = now;
    Bucket* made = bucket.get();
    made->targets.resize(std::max<size_t>(1, levels_.size()));
    known_.push_back(made);
    if (known_.size() > kMostBuckets) Forget();
    return *made;
  }
  bucket->used = std::max(bucket->used, now);
  return *bucket;
}

// The one that was used longest ago; the newest stays.
void ModelQueue::Forget() {
  auto oldest = known_.end();
  for (auto it = known_.begin(); it + 1 != known_.end(); ++it) {
    if ((*it)->queue.empty() && (oldest == known_.end() || (*it)->used < (*oldest)->used)) oldest = it;
  }
  if (oldest == known_.end()) return;
  const int64_t id = (*oldest)->id;
  known_.erase(oldest);
  buckets_.erase(id);
}

int64_t ModelQueue::ClassOf(const BatchTask& task) const {
  if (options_.priority_levels > 0 && task.priority() == 0) return options_.default_priority_level;
  return -int64_t{task.priority()};
}

const QueuePolicy& ModelQueue::PolicyOf(int64_t priority_class) const {
  const auto found = options_.level_policies.find(static_cast<int>(priority_class));
  return found == options_.level_policies.end() ? options_.default_policy : found->second;
}

ModelQueue::Level& ModelQueue::LevelOf(int64_t priority_class) {
  auto at = std::find_if(levels_.begin(), levels_.end(),
                         [&](const Level& level) { return level.priority_class >= priority_class; });
  if (at == levels_.end() || at->priority_class != priority_class) {
    at = levels_.insert(at, {.priority_class = priority_class});
    for (Bucket* bucket : known_) bucket->targets.assign(levels_.size(), {});
    retarget_at_ = 0;
  }
  return *at;
}

// The one that comes least, if one is empty; `kept` stays.
void ModelQueue::ForgetLevel(int64_t kept, int64_t now) {
  auto least = levels_.end();
  double rate = 0;
  for (auto it = levels_.begin(); it != levels_.end(); ++it) {
    if (it->queued > 0 || it->priority_class == kept) continue;
    const double its = it->arrivals.At(now, kLevelMemory);
    if (least != levels_.end() && its >= rate) continue;
    least = it;
    rate = its;
  }
  if (least == levels_.end()) return;
  levels_.erase(least);
  for (Bucket* bucket : known_) bucket->targets.assign(levels_.size(), {});
  retarget_at_ = 0;
}

const BatchTarget& ModelQueue::TargetOf(const Bucket& bucket, int64_t priority_class) const {
  size_t level = 0;
  while (level + 1 < levels_.size() && levels_[level].priority_class < priority_class) ++level;
  return bucket.targets[level];
}

absl::Status ModelQueue::Push(std::unique_ptr<BatchTask>& task, int64_t now, double ahead, double instances,
                              Dropped* dropped) {
  const int64_t size = task->size();
  if (size < 1 || size > options_.max_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request holds ", size, " pictures; this model takes 1 to ", options_.max_batch_size));
  }
  if (absl::Status alive = CheckAlive(task->traits(), absl::FromUnixNanos(now)); !alive.ok()) return alive;
  const int64_t priority_class = ClassOf(*task);
  const QueuePolicy& policy = PolicyOf(priority_class);
  const int64_t arrival = absl::ToUnixNanos(task->arrival());
  Bucket::Entry entry;
  if (task->deadline() != absl::InfiniteFuture()) entry.deadline = absl::ToUnixNanos(task->deadline());
  absl::Duration timeout = policy.timeout;
  if (policy.allow_timeout_override) timeout = std::min(timeout, task->timeout());
  if (timeout != absl::InfiniteDuration())
    entry.timeout = Saturated(arrival, absl::ToDoubleNanoseconds(timeout));
  Bucket::Place place{priority_class, entry.deadline == kNever ? arrival + kUsualPatience : entry.deadline,
                      arrival, pushed_++};

  Bucket& bucket = Find(task->bucket(), now);
  // What is refused counts too: the load is what comes.
  const auto left = static_cast<double>(place.deadline - now);
  bucket.patience += (bucket.patience == 0 ? 1 : kPatienceWeight) * (left - bucket.patience);
  bucket.arrivals.Add(size, now, RateMemory(bucket));
  LevelOf(priority_class).arrivals.Add(size, now, kLevelMemory);
  if (levels_.size() > kMostLevels) ForgetLevel(priority_class, now);
  if (--retarget_after_ <= 0) retarget_at_ = 0;
  // Who is refused finds no batch due: what refuses them has to be looked at here.
  UpdateTargets(now, instances);

  if (entry.deadline != kNever) {
    absl::Status in_time = CheckInTime(*task, bucket, place, now, ahead, instances);
    if (absl::IsDeadlineExceeded(in_time)) Doubt(bucket, left, now);
    if (!in_time.ok()) return in_time;
  }
  if (absl::Status room = CheckRoom(priority_class, size, now, dropped); !room.ok()) {
    SetRetryAfter(room, Nanos(ahead + backlog_ / instances));
    return room;
  }
  const int64_t shared = std::max(size, TargetOf(bucket, priority_class).largest);
  entry.cost = static_cast<double>(size) * bucket.latency.Mean(shared) / static_cast<double>(shared);
  entry.task = std::move(task);
  Add(bucket, place, std::move(entry));
  return absl::OkStatus();
}

// Somebody who has `left` was refused for what a pass takes.
void ModelQueue::Doubt(Bucket& bucket, double left, int64_t now) {
  const bool warmed_up_only = bucket.learned == 0;
  const double quiet = static_cast<double>(now - bucket.learned);
  if (warmed_up_only || (quiet >= kDoubtAfter * bucket.latency.Upper(1) && bucket.latency.Doubt(left)))
    bucket.learned = now;
}

absl::Status ModelQueue::CheckRoom(int64_t priority_class, int64_t size, int64_t now, Dropped* dropped) {
  const int64_t level_most = PolicyOf(priority_class).max_queue_size;
  const auto level_full = [&] {
    return level_most > 0 && LevelOf(priority_class).queued + size > level_most;
  };
  const auto full = [&] { return queued_ + size > options_.max_queue_size; };
  if (level_full() || full()) SweepAll(now, dropped);
  if (level_full()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the model's queue is full for priority ", priority_class, ": ", LevelOf(priority_class).queued,
        " of ", level_most, " pictures (max_queue_size) wait; try again later"));
  }
  while (full() && Evict(priority_class, dropped)) continue;
  if (!full()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the model's queue is full: ", queued_, " of ",
                                                   options_.max_queue_size,
                                                   " pictures (max_queue_size) wait; try again later"));
}

// The last in order of a class behind `priority_class`.
bool ModelQueue::Evict(int64_t priority_class, Dropped* dropped) {
  Bucket* last = nullptr;
  for (Bucket* bucket : waiting_) {
    if (last == nullptr || bucket->queue.rbegin()->first > last->queue.rbegin()->first) last = bucket;
  }
  if (last == nullptr || last->queue.rbegin()->first.priority_class <= priority_class) return false;
  absl::Status why = absl::ResourceExhaustedError(
      absl::StrCat("the model's queue is full (max_queue_size is ", options_.max_queue_size,
                   "), and a request of higher priority took the place of this one; try again later"));
  SetRetryAfter(why, Nanos(backlog_));
  auto latest = std::prev(last->queue.end());
  dropped->push_back({Remove(*last, latest), std::move(why)});
  return true;
}

absl::Status ModelQueue::CheckInTime(const BatchTask& task, const Bucket& bucket, const Bucket::Place& place,
                                     int64_t now, double ahead, double instances) const {
  if (!bucket.latency.known()) return absl::OkStatus();
  const auto left = static_cast<double>(place.deadline - now);
  const double alone = bucket.latency.Upper(task.size());
  if (alone > left) return TooLate(alone, place.deadline - now);
  const BatchTarget& target = TargetOf(bucket, place.priority_class);
  double ends = 0;
  double bearable = left;
  if (target.overloaded) {
    // Only what the next batches can take has a chance, and others may come in time for them.
    const int64_t usual = std::min(target.size, static_cast<int64_t>(std::ceil(bucket.usual)));
    const int64_t size = std::min(usual, bucket.latency.LargestWithin(left, options_.max_batch_size));
    const double next = bucket.latency.Upper(std::max(task.size(), size));
    ends = ahead + std::max(next, bucket.backlog / instances + alone);
  } else {
    bearable = kHope * left;
    ends = ahead + backlog_ / instances + alone;
    if (ends > bearable) ends = ahead + WorkAhead(place) / instances + alone;
  }
  if (ends <= bearable) return absl::OkStatus();
  absl::Status why = absl::ResourceExhaustedError(
      absl::StrCat("the model is overloaded: with what waits this request would end about ",
                   absl::FormatDuration(Nanos(ends)), " from now, and ", absl::FormatDuration(Nanos(left)),
                   " are left; try again later"));
  SetShedReason(why, ShedReason::kPredictedLate);
  SetRetryAfter(why, Nanos(ends - left));
  return why;
}

// What goes before `place`, in nanoseconds of one instance's time. Within a class, queues are taken to be as
// dense at one deadline as at another.
double ModelQueue::WorkAhead(const Bucket::Place& place) const {
  double ahead = 0;
  for (const Level& level : levels_) {
    if (level.priority_class < place.priority_class) ahead += level.backlog;
    if (level.priority_class != place.priority_class || level.backlog == 0) continue;
    int64_t first = kNever;
    int64_t last = 0;
    for (const Bucket* bucket : waiting_) {
      first = std::min(first, bucket->queue.begin()->first.deadline);
      last = std::max(last, bucket->queue.rbegin()->first.deadline);
    }
    const double span = std::max(1.0, static_cast<double>(last - first));
    ahead += level.backlog * std::clamp(static_cast<double>(place.deadline - first) / span, 0.0, 1.0);
  }
  return ahead;
}

void ModelQueue::Add(Bucket& bucket, const Bucket::Place& place, Bucket::Entry entry) {
  const int64_t size = entry.task->size();
  if (bucket.queue.empty()) waiting_.push_back(&bucket);
  bucket.queued += size;
  bucket.backlog += entry.cost;
  queued_ += size;
  backlog_ += entry.cost;
  Level& level = LevelOf(place.priority_class);
  level.queued += size;
  level.backlog += entry.cost;
  bucket.queue.emplace_hint(bucket.queue.end(), place, std::move(entry));
}

std::unique_ptr<BatchTask> ModelQueue::Remove(Bucket& bucket, Bucket::Queue::iterator& it) {
  const int64_t size = it->second.task->size();
  Level& level = LevelOf(it->first.priority_class);
  bucket.queued -= size;
  bucket.backlog = bucket.queued == 0 ? 0 : bucket.backlog - it->second.cost;
  queued_ -= size;
  level.queued -= size;
  // Sums of what was added: nothing is left of rounding once nothing waits.
  backlog_ = queued_ == 0 ? 0 : backlog_ - it->second.cost;
  level.backlog = level.queued == 0 ? 0 : level.backlog - it->second.cost;
  std::unique_ptr<BatchTask> task = std::move(it->second.task);
  it = bucket.queue.erase(it);
  if (bucket.queue.empty()) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &bucket));
  return task;
}

bool ModelQueue::KeepWaiting(Bucket& bucket, Bucket::Queue::iterator& it, int64_t now, Dropped* dropped) {
  const Bucket::Entry& entry = it->second;
  const bool timed_out = now >= entry.timeout;
  if (!timed_out && now < entry.deadline && !entry.task->cancelled()) return true;
  const Bucket::Place place = it->first;
  // A nanosecond later, as deadlines were cut to nanoseconds.
  absl::Status why = CheckAlive(entry.task->traits(), absl::FromUnixNanos(now + 1));
  if (why.ok() && PolicyOf(place.priority_class).timeout_action == QueuePolicy::TimeoutAction::kDelay) {
    Bucket::Entry delayed = std::move(it->second);
    delayed.timeout = kNever;
    Bucket::Place last = place;
    last.priority_class = Bucket::kDelayedClass;
    Level& level = LevelOf(place.priority_class);
    level.queued -= delayed.task->size();
    level.backlog -= delayed.cost;
    Level& behind = LevelOf(last.priority_class);
    behind.queued += delayed.task->size();
    behind.backlog += delayed.cost;
    bucket.queue.erase(it);
    bucket.queue.emplace(last, std::move(delayed));
    // Places are unique: the next is the first behind it.
    it = bucket.queue.upper_bound(place);
  } else {
    if (why.ok()) {
      why = absl::DeadlineExceededError(absl::StrCat(
          "the request has waited ", absl::FormatDuration(absl::Nanoseconds(now - place.arrival)),
          " for an instance; its queue timeout is ",
          absl::FormatDuration(absl::Nanoseconds(entry.timeout - place.arrival))));
    }
    dropped->push_back({Remove(bucket, it), std::move(why)});
  }
  return false;
}

void ModelQueue::Sweep(Bucket& bucket, int64_t now, Dropped* dropped) {
  bucket.swept = now;
  for (auto it = bucket.queue.begin(); it != bucket.queue.end();) {
    if (!KeepWaiting(bucket, it, now, dropped)) continue;
    const double alone = bucket.latency.Upper(it->second.task->size());
    const int64_t deadline = it->second.deadline;
    if (deadline == kNever || alone <= static_cast<double>(deadline - now)) {
      ++it;
      continue;
    }
    dropped->push_back({Remove(bucket, it), TooLate(alone, deadline - now)});
  }
}

void ModelQueue::SweepAll(int64_t now, Dropped* dropped) {
  if (now < swept_ + kMillisecond) return;
  swept_ = now;
  for (size_t i = waiting_.size(); i-- > 0;) Sweep(*waiting_[i], now, dropped);
}

// Drops heads that would be late in the batch that the load needs. Smaller batches would be in time for them,
// and then late for ever more of those behind.
void ModelQueue::Shed(Bucket& bucket, int64_t now, Dropped* dropped) {
  while (!bucket.queue.empty()) {
    auto head = bucket.queue.begin();
    if (!KeepWaiting(bucket, head, now, dropped)) continue;
    if (head->second.deadline == kNever) return;
    const BatchTarget& target = TargetOf(bucket, head->first.priority_class);
    // Only of its own level and those before it: who comes after it is no reason to give it up.
    const bool crowded = &target == &bucket.targets.back() &&
                         static_cast<double>(bucket.queued) > kCrowd * static_cast<double>(target.largest);
    const int64_t needed = crowded ? std::max(target.size, target.largest) : target.size;
    const int64_t size = std::max(std::min(bucket.queued, needed), head->second.task->size());
    const double takes = bucket.latency.Upper(size);
    const int64_t left = head->second.deadline - now;
    if (takes <= static_cast<double>(left)) return;
    dropped->push_back({Remove(bucket, head), TooLate(takes, left)});
  }
}

// A batch that takes more of those who need not be served keeps those waiting who do. REQUIRES:
// !queue.empty().
int64_t ModelQueue::MostTogether(const Bucket& bucket, int64_t now) const {
  const BatchTarget& first = TargetOf(bucket, bucket.queue.begin()->first.priority_class);
  const bool others_too_many = !first.overloaded && bucket.targets.back().overloaded;
  const int64_t most = now < bucket.fits_until ? bucket.fits : options_.max_batch_size;
  return std::min({bucket.queued, most, others_too_many ? first.largest : most});
}

// How many would go now. REQUIRES: !queue.empty().
int64_t ModelQueue::BatchSize(const Bucket& bucket, int64_t now) const {
  const auto& [place, head] = *bucket.queue.begin();
  int64_t size = MostTogether(bucket, now);
  if (head.deadline != kNever)
    size = bucket.latency.LargestWithin(static_cast<double>(head.deadline - now), size);
  return std::max(size, head.task->size());
}

void ModelQueue::UpdateTargets(int64_t now, double instances) {
  if (now < retarget_at_) return;
  retarget_at_ = now + kRetargetEvery;
  retarget_after_ = kRetargetPushes;
  double total = 0;
  for (const Level& level : levels_) total += level.arrivals.At(now, kLevelMemory);
  double sum = 0;
  for (size_t i = 0; i < levels_.size(); ++i) {
    sum += levels_[i].arrivals.At(now, kLevelMemory);
    const double share = i + 1 == levels_.size() || total == 0 ? 1 : sum / total;
    active_ = SetTargets(known_, i, share, instances, options_.max_batch_size, now);
  }
}

bool ModelQueue::FindDue(int64_t now, double instances, bool at_once, Due* due, int64_t* wake_at,
                         Dropped* dropped) {
  UpdateTargets(now, instances);
  double passes = 0;
  for (size_t i = waiting_.size(); i-- > 0;) {
    Bucket& bucket = *waiting_[i];
    if (now >= bucket.swept + kSweepEvery) Sweep(bucket, now, dropped);
    Shed(bucket, now, dropped);
    if (!bucket.queue.empty()) passes += bucket.latency.Mean(BatchSize(bucket, now));
  }
  bool found = false;
  for (Bucket* bucket : waiting_) {
    const int64_t size = BatchSize(*bucket, now);
    const double cost = bucket->latency.Mean(size);
    const int64_t due_at = at_once ? 0 : DueAt(*bucket, size, instances, (passes - cost) / instances);
    if (due_at > now) {
      *wake_at = std::min(*wake_at, due_at);
      continue;
    }
    const Bucket::Place& head = bucket->queue.begin()->first;
    const int64_t latest_start = head.deadline - static_cast<int64_t>(cost);
    if (found &&
        std::pair(due->priority_class, due->latest_start) <= std::pair(head.priority_class, latest_start))
      continue;
    found = true;
    *due = {bucket, head.priority_class, latest_start};
  }
  return found;
}

// `size` would go now, and other buckets' batches would keep the instances busy for `others`.
int64_t ModelQueue::DueAt(const Bucket& bucket, int64_t size, double instances, double others) const {
  const Bucket::Place& head = bucket.queue.begin()->first;
  const int64_t target = TargetOf(bucket, head.priority_class).size;
  const bool enough =
      bucket.queued >= target || size < std::min(bucket.queued, options_.max_batch_size) ||
      (!options_.preferred_batch_sizes.empty() && bucket.queued >= options_.preferred_batch_sizes.back());
  if (enough || options_.max_queue_delay == absl::ZeroDuration()) return 0;
  // Where buckets outnumber instances there is always somebody else to compute for, and who waits waits long.
  if (static_cast<double>(active_) > instances) return 0;
  const LatencyModel& latency = bucket.latency;
  const int64_t larger = std::min(size + 1, options_.max_batch_size);
  // All that waits, fewer than the target, would go together, and some behind the head may have less time.
  int64_t earliest = kNever;
  int64_t oldest = kNever;
  for (const auto& [place, entry] : bucket.queue) {
    earliest = std::min(earliest, place.deadline);
    oldest = std::min(oldest, place.arrival);
  }
  const int64_t starts_by = earliest - static_cast<int64_t>(latency.Upper(larger) + others);
  const int64_t pays_until = head.arrival + static_cast<int64_t>(kLongestWait * latency.Upper(target));
  return std::min(
      {starts_by, pays_until, Saturated(oldest, absl::ToDoubleNanoseconds(options_.max_queue_delay))});
}

// How many pictures, at most `most`, would all be in time in a batch of so many.
int64_t ModelQueue::InTime(const Bucket& bucket, int64_t most, int64_t now) {
  const int64_t ends = Saturated(now, bucket.latency.Upper(most));
  int64_t count = 0;
  for (const auto& [place, entry] : bucket.queue) {
    if (entry.deadline >= ends) count += entry.task->size();
    if (count >= most) return most;
  }
  return count;
}

ModelQueue::Tasks ModelQueue::Take(Bucket& bucket, int64_t now, Dropped* dropped) {
  // Later priorities may have earlier deadlines: what would be late in the batch that the first of all allows
  // is left out, and where much is, the batch is as small as what is left.
  int64_t room = BatchSize(bucket, now);
  room = std::clamp<int64_t>(InTime(bucket, room, now), 1, room);
  const int64_t ends = Saturated(now, bucket.latency.Upper(room));
  const auto& preferred = options_.preferred_batch_sizes;
  const auto most =
      std::find_if(preferred.rbegin(), preferred.rend(), [room](int64_t size) { return size <= room; });
  if (most != preferred.rend()) room = *most;
  Tasks batch;
  int64_t taken = 0;
  for (auto it = bucket.queue.begin(); it != bucket.queue.end() && taken < room;) {
    if (!KeepWaiting(bucket, it, now, dropped)) continue;
    const int64_t size = it->second.task->size();
    // Too large for what is left of the batch, or too late: one behind it may do.
    if (taken > 0 && (size > room - taken || ends > it->second.deadline)) {
      ++it;
      continue;
    }
    taken += size;
    batch.push_back(Remove(bucket, it));
  }
  bucket.usual += kUsualWeight * (static_cast<double>(taken) - bucket.usual);
  return batch;
}

ModelQueue::Tasks ModelQueue::TakeAll() {
  Tasks all;
  while (!waiting_.empty()) {
    auto first = waiting_.back()->queue.begin();
    all.push_back(Remove(*waiting_.back(), first));
  }
  return all;
}

}  // namespace saccade::server
