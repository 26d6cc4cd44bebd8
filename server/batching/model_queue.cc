#include "server/batching/model_queue.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_target.h"

namespace saccade::server {
namespace {

// A bucket is crowded if its queue exceeds the target's largest batch by this factor. This does not depend on
// the arrival rate, which reacts slowly to bursts.
constexpr double kMinCrowding = 1.25;
// Maximum waiting time for more items, as a fraction of the latency of the batch that is waited for.
constexpr double kMaxWaitShare = 0.25;
// Interval at which a whole queue is checked for cancelled tasks; in between, only its head is checked.
constexpr Nanos kSweepEvery = 5 * kMillisecond;
// Interval at which batch targets are recomputed, in time and in pushes.
constexpr Nanos kRetargetEvery = kMillisecond;
constexpr int64_t kRetargetPushes = 16;
// Largest number of targets (levels times buckets) that are recomputed at these intervals. With more, both
// intervals grow in proportion, so that the time per push stays the same.
constexpr size_t kTargetsPerInterval = 64;
// Up to this number of levels, a new level makes all targets be recomputed at once. Clients choose the number
// of levels, so above it a new level starts with the targets of its neighbour.
constexpr size_t kMaxLevelsAtOnce = 8;
// Maximum number of buckets; above it, an empty one is forgotten. Priority levels are bounded as well
// (model_queue_push.cc).
constexpr size_t kMaxBuckets = 256;
// Maximum number of batch sizes that Learned() returns for a bucket. Bounds the copying under the group's
// lock, and the size of the response that lists them.
constexpr int64_t kMaxLearnedSizes = 128;
// How long after a batch that ran out of memory no larger batches are tried.
constexpr Nanos kReduceFor = 30 * kSecond;
// Weight of the newest batch in Bucket::usual.
constexpr double kUsualWeight = 0.2;

// Makes room for one more element, in amortized constant time.
template <typename T>
void ReserveOneMore(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 1);
}

}  // namespace

ModelQueue::ModelQueue(const BatcherOptions& options) : options_(options) {}

void ModelQueue::Learn(int64_t bucket, int64_t size, std::optional<Nanos> took, NanoTime now) {
  Bucket& known = Find(bucket, now);
  known.learned = now;
  if (took && *took > Nanos()) known.latency.Learn(size, *took);
}

void ModelQueue::CountComputed(int64_t bucket, int64_t size, NanoTime now) {
  Bucket& ended = Find(bucket, now);
  ended.computed += size;
  ended.computing -= size;
}

std::optional<Nanos> ModelQueue::Expected(int64_t bucket, int64_t size) const {
  const auto known = buckets_.find(bucket);
  if (known == buckets_.end() || !known->second->latency.known()) return std::nullopt;
  return known->second->latency.Mean(size);
}

std::vector<LearnedTiming> ModelQueue::Learned() const {
  std::vector<LearnedTiming> learned;
  for (const Bucket* bucket : known_) {
    const LatencyModel& latency = bucket->latency;
    if (!latency.known()) continue;
    LearnedTiming& timing = learned.emplace_back();
    timing.bucket = bucket->id;
    timing.computed = bucket->computed;
    timing.smallest = latency.smallest();
    timing.largest = latency.largest();
    timing.deviation = latency.deviation();
    for (int64_t size = 1; size <= std::min(options_.max_batch_size, kMaxLearnedSizes); ++size)
      timing.mean.push_back(ToDuration(latency.Mean(size)));
  }
  std::sort(learned.begin(), learned.end(),
            [](const LearnedTiming& a, const LearnedTiming& b) { return a.bucket < b.bucket; });
  return learned;
}

void ModelQueue::ReduceBatches(int64_t bucket, int64_t size, NanoTime now) {
  Bucket& reduced = Find(bucket, now);
  reduced.fits = std::max<int64_t>(1, size / 2);
  reduced.fits_until = now + kReduceFor;
}

Bucket& ModelQueue::Find(int64_t id, NanoTime now) {
  const auto known = buckets_.find(id);
  if (known == buckets_.end()) {
    auto bucket = std::make_unique<Bucket>(id, options_.max_batch_size);
    bucket->used = now;
    Bucket* const made = bucket.get();
    made->targets.resize(std::max<size_t>(1, levels_.size()));
    // Room first, so that no allocation fails between the two.
    ReserveOneMore(known_);
    buckets_.emplace(id, std::move(bucket));
    known_.push_back(made);
    if (known_.size() > kMaxBuckets) Forget();
    return *made;
  }
  known->second->used = std::max(known->second->used, now);
  return *known->second;
}

// Forgets the least recently used bucket without tasks, except the newest. Keeps those that are computed.
void ModelQueue::Forget() {
  auto oldest = known_.end();
  for (auto it = known_.begin(); it + 1 != known_.end(); ++it) {
    if (!(*it)->queue.empty() || (*it)->computing > 0) continue;
    if (oldest == known_.end() || (*it)->used < (*oldest)->used) oldest = it;
  }
  if (oldest == known_.end()) return;
  const int64_t id = (*oldest)->id;
  known_.erase(oldest);
  buckets_.erase(id);
}

ModelQueue::Level& ModelQueue::LevelOf(int64_t priority_class) {
  auto at = std::find_if(levels_.begin(), levels_.end(),
                         [&](const Level& level) { return level.priority_class >= priority_class; });
  if (at != levels_.end() && at->priority_class == priority_class) return *at;
  const auto index = at - levels_.begin();
  // Room first, so that levels and targets always have the same number.
  ReserveOneMore(levels_);
  for (Bucket* bucket : known_) ReserveOneMore(bucket->targets);
  at = levels_.insert(levels_.begin() + index, {.priority_class = priority_class});
  if (levels_.size() <= kMaxLevelsAtOnce) {
    for (Bucket* bucket : known_) bucket->targets.assign(levels_.size(), {});
    retarget_at_ = NanoTime();
    return *at;
  }
  for (Bucket* bucket : known_) {
    // The load of the new level and those before it is nearly that of those before it.
    const BatchTarget neighbour = bucket->targets[std::max<ptrdiff_t>(0, index - 1)];
    bucket->targets.insert(bucket->targets.begin() + index, neighbour);
  }
  return *at;
}

// Forgets the level with the lowest arrival rate among those without tasks, except `kept`. Called only if
// there are very many levels.
void ModelQueue::ForgetLevel(int64_t kept, NanoTime now) {
  auto min = levels_.end();
  double rate = 0;
  for (auto it = levels_.begin(); it != levels_.end(); ++it) {
    if (it->queued > 0 || it->own_tasks > 0 || it->priority_class == kept) continue;
    const double its = it->arrivals.At(now, kLevelMemory);
    if (min != levels_.end() && its >= rate) continue;
    min = it;
    rate = its;
  }
  if (min == levels_.end()) return;
  const auto index = min - levels_.begin();
  levels_.erase(min);
  // The targets of the other levels stay as they are until all are recomputed.
  for (Bucket* bucket : known_) bucket->targets.erase(bucket->targets.begin() + index);
}

const BatchTarget& ModelQueue::TargetOf(const Bucket& bucket, int64_t priority_class) const {
  size_t level = 0;
  while (level + 1 < levels_.size() && levels_[level].priority_class < priority_class) ++level;
  return bucket.targets[level];
}

void ModelQueue::Add(Bucket& bucket, const Bucket::Position& position, Bucket::Entry entry) {
  const int64_t size = entry.task->size();
  const Nanos cost = entry.cost;
  Level& level = LevelOf(position.priority_class);
  // What allocates comes first, so that a failed allocation changes nothing.
  ReserveOneMore(waiting_);
  const bool first = bucket.queue.empty();
  bucket.queue.emplace_hint(bucket.queue.end(), position, std::move(entry));
  if (first) waiting_.push_back(&bucket);
  bucket.queued += size;
  bucket.backlog += cost;
  queued_ += size;
  backlog_ += cost;
  level.queued += size;
  level.backlog += cost;
  // A task is not delayed yet when it is added.
  ++level.own_tasks;
  level.own_items += size;
}

std::unique_ptr<BatchTask> ModelQueue::Remove(Bucket& bucket, Bucket::Queue::iterator& it) {
  const int64_t size = it->second.task->size();
  Level& level = LevelOf(it->first.priority_class);
  bucket.queued -= size;
  bucket.backlog = bucket.queued == 0 ? Nanos() : bucket.backlog - it->second.cost;
  queued_ -= size;
  level.queued -= size;
  Level& own = LevelOf(it->second.own_class);
  --own.own_tasks;
  own.own_items -= size;
  // Avoids accumulated rounding errors: without tasks the sum is exactly 0.
  backlog_ = queued_ == 0 ? Nanos() : backlog_ - it->second.cost;
  level.backlog = level.queued == 0 ? Nanos() : level.backlog - it->second.cost;
  std::unique_ptr<BatchTask> task = std::move(it->second.task);
  it = bucket.queue.erase(it);
  if (bucket.queue.empty()) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &bucket));
  return task;
}

void ModelQueue::Drop(Bucket& bucket, Bucket::Queue::iterator& it, absl::Status why, Dropped* dropped) {
  // Room first, so that no task is lost.
  ReserveOneMore(*dropped);
  dropped->push_back({Remove(bucket, it), std::move(why)});
}

bool ModelQueue::KeepWaiting(Bucket& bucket, Bucket::Queue::iterator& it, NanoTime now, Dropped* dropped) {
  const Bucket::Entry& entry = it->second;
  const bool timed_out = now >= entry.timeout;
  if (!timed_out && now < entry.deadline && !entry.task->cancelled()) return true;
  const Bucket::Position position = it->first;
  // Deadlines were truncated to nanoseconds, so check a nanosecond later.
  absl::Status why = CheckAlive(entry.task->traits(), (now + Nanos(1)).ToTime());
  if (why.ok() &&
      options_.PolicyOf(position.priority_class).timeout_action == QueuePolicy::TimeoutAction::kDelay) {
    Bucket::Position last = position;
    last.priority_class = Bucket::kDelayedClass;
    // What allocates comes first, so that a failed allocation changes nothing.
    LevelOf(last.priority_class);
    Bucket::Entry& delayed = bucket.queue.try_emplace(last).first->second;
    // The insertion has invalidated it.
    it = bucket.queue.find(position);
    delayed = std::move(it->second);
    delayed.timeout = NanoTime::Never();
    Level& level = LevelOf(position.priority_class);
    level.queued -= delayed.task->size();
    level.backlog -= delayed.cost;
    Level& behind = LevelOf(last.priority_class);
    behind.queued += delayed.task->size();
    behind.backlog += delayed.cost;
    it = bucket.queue.erase(it);
  } else {
    if (why.ok()) {
      why = absl::DeadlineExceededError(
          absl::StrCat("the request has waited ", absl::FormatDuration(ToDuration(now - position.arrival)),
                       " for an instance, longer than its queue timeout of ",
                       absl::FormatDuration(ToDuration(entry.timeout - position.arrival))));
    }
    Drop(bucket, it, std::move(why), dropped);
  }
  return false;
}

void ModelQueue::Sweep(Bucket& bucket, NanoTime now, Dropped* dropped) {
  bucket.swept = now;
  for (auto it = bucket.queue.begin(); it != bucket.queue.end();) {
    if (!KeepWaiting(bucket, it, now, dropped)) continue;
    const Nanos alone = bucket.latency.Upper(it->second.task->size());
    const NanoTime deadline = it->second.deadline;
    if (deadline == NanoTime::Never() || alone <= deadline - now) {
      ++it;
      continue;
    }
    Drop(bucket, it, TooLate(alone, deadline - now), dropped);
  }
}

// The error for a request that has `left` until its deadline for a pass that takes `takes`.
absl::Status ModelQueue::TooLate(Nanos takes, Nanos left) {
  return absl::DeadlineExceededError(
      absl::StrCat("the request cannot be answered in time: a forward pass takes about ",
                   absl::FormatDuration(ToDuration(takes)), ", and ", absl::FormatDuration(ToDuration(left)),
                   " are left before its deadline; use a later deadline"));
}

void ModelQueue::SweepAll(NanoTime now, Dropped* dropped) {
  if (now < swept_ + kMillisecond) return;
  swept_ = now;
  for (size_t i = waiting_.size(); i-- > 0;) Sweep(*waiting_[i], now, dropped);
}

// Drops tasks at the head that would be late in a batch of the size that the load requires. Smaller batches
// would be in time for them, but would make more and more of the later tasks late.
void ModelQueue::Shed(Bucket& bucket, NanoTime now, Dropped* dropped) {
  while (!bucket.queue.empty()) {
    auto head = bucket.queue.begin();
    if (!KeepWaiting(bucket, head, now, dropped)) continue;
    if (head->second.deadline == NanoTime::Never()) return;
    const BatchTarget& target = TargetOf(bucket, head->first.priority_class);
    // The queue's length counts only for the last level, because tasks of later levels are no reason to drop
    // a task.
    const bool crowded =
        &target == &bucket.targets.back() &&
        static_cast<double>(bucket.queued) > kMinCrowding * static_cast<double>(target.largest);
    const int64_t needed = crowded ? std::max(target.size, target.largest) : target.size;
    const int64_t size = std::max(std::min(bucket.queued, needed), head->second.task->size());
    const Nanos takes = bucket.latency.Upper(size);
    const Nanos left = head->second.deadline - now;
    if (takes <= left) return;
    Drop(bucket, head, TooLate(takes, left), dropped);
  }
}

// Maximum size of the next batch. If only later levels overload the model, the batch is limited to the first
// level's largest size: more items of later levels would delay items of the first one. REQUIRES:
// !queue.empty().
int64_t ModelQueue::MaxTogether(const Bucket& bucket, NanoTime now) const {
  const BatchTarget& first = TargetOf(bucket, bucket.queue.begin()->first.priority_class);
  const bool others_too_many = !first.overloaded && bucket.targets.back().overloaded;
  const int64_t max = now < bucket.fits_until ? bucket.fits : options_.max_batch_size;
  return std::min({bucket.queued, max, others_too_many ? first.largest : max});
}

// Number of items that would start now. REQUIRES: !queue.empty().
int64_t ModelQueue::BatchSize(const Bucket& bucket, NanoTime now) const {
  const auto& [position, head] = *bucket.queue.begin();
  int64_t size = MaxTogether(bucket, now);
  if (head.deadline != NanoTime::Never()) size = bucket.latency.LargestWithin(head.deadline - now, size);
  return std::max(size, head.task->size());
}

void ModelQueue::UpdateTargets(NanoTime now, double instances) {
  if (now < retarget_at_) return;
  const size_t targets = levels_.size() * known_.size();
  const double intervals =
      static_cast<double>(std::max(targets, kTargetsPerInterval)) / static_cast<double>(kTargetsPerInterval);
  retarget_at_ = now + intervals * kRetargetEvery;
  retarget_after_ = static_cast<int64_t>(intervals * static_cast<double>(kRetargetPushes));
  targets_computed_ += static_cast<int64_t>(targets);
  double total = 0;
  for (const Level& level : levels_) total += level.arrivals.At(now, kLevelMemory);
  double sum = 0;
  for (size_t i = 0; i < levels_.size(); ++i) {
    sum += levels_[i].arrivals.At(now, kLevelMemory);
    const double share = i + 1 == levels_.size() || total == 0 ? 1 : sum / total;
    active_ = SetTargets(known_, i, share, instances, options_.max_batch_size, now);
  }
}

bool ModelQueue::FindDue(NanoTime now, double instances, bool at_once, Due* due, NanoTime* wake_at,
                         Dropped* dropped) {
  UpdateTargets(now, instances);
  Nanos passes;
  for (size_t i = waiting_.size(); i-- > 0;) {
    Bucket& bucket = *waiting_[i];
    if (now >= bucket.swept + kSweepEvery) Sweep(bucket, now, dropped);
    Shed(bucket, now, dropped);
    if (!bucket.queue.empty()) passes += bucket.latency.Mean(BatchSize(bucket, now));
  }
  bool found = false;
  for (Bucket* bucket : waiting_) {
    const int64_t size = BatchSize(*bucket, now);
    const Nanos cost = bucket->latency.Mean(size);
    const NanoTime due_at =
        at_once ? NanoTime() : DueAt(*bucket, size, instances, (passes - cost) / instances, now);
    if (due_at > now) {
      *wake_at = std::min(*wake_at, due_at);
      continue;
    }
    const Bucket::Position& head = bucket->queue.begin()->first;
    const NanoTime latest_start = head.deadline - cost;
    if (found &&
        std::pair(due->priority_class, due->latest_start) <= std::pair(head.priority_class, latest_start))
      continue;
    found = true;
    *due = {bucket, head.priority_class, latest_start};
  }
  return found;
}

// Whether more items may arrive before those in flight have ended. If as many are in flight as were at most
// in the recent past, all clients wait for answers. A client that sends one request after the other is alone,
// however fast they follow each other.
bool ModelQueue::MayGrow(const Bucket& bucket, NanoTime now) {
  return bucket.queued + bucket.computing < bucket.together.At(now, RateMemory(bucket));
}

// Returns when a batch is due whose size would be `size` now; the epoch means at once. `others` is the time
// for which other buckets' batches would keep the instances busy.
NanoTime ModelQueue::DueAt(const Bucket& bucket, int64_t size, double instances, Nanos others,
                           NanoTime now) const {
  const Bucket::Position& head = bucket.queue.begin()->first;
  const int64_t target = TargetOf(bucket, head.priority_class).size;
  const bool enough =
      bucket.queued >= target || !MayGrow(bucket, now) ||
      size < std::min(bucket.queued, options_.max_batch_size) ||
      (!options_.preferred_batch_sizes.empty() && bucket.queued >= options_.preferred_batch_sizes.back());
  if (enough || options_.max_queue_delay == absl::ZeroDuration()) return NanoTime();
  // If active buckets outnumber the instances, there is always another batch to compute, and waiting takes
  // long.
  if (static_cast<double>(active_) > instances) return NanoTime();
  const LatencyModel& latency = bucket.latency;
  const int64_t larger = std::min(size + 1, options_.max_batch_size);
  // All queued items, fewer than the target, would go into one batch, and tasks behind the head may have
  // earlier deadlines or arrivals.
  NanoTime earliest = NanoTime::Never();
  NanoTime oldest = NanoTime::Never();
  for (const auto& [position, entry] : bucket.queue) {
    earliest = std::min(earliest, position.deadline);
    oldest = std::min(oldest, position.arrival);
  }
  const NanoTime starts_by = earliest - (latency.Upper(larger) + others);
  const NanoTime pays_until = head.arrival + kMaxWaitShare * latency.Upper(target);
  return std::min({starts_by, pays_until, oldest + Nanos(options_.max_queue_delay)});
}

// Number of items, at most `max`, that would be in time in a batch of `max`.
int64_t ModelQueue::InTime(const Bucket& bucket, int64_t max, NanoTime now) {
  const NanoTime ends = now + bucket.latency.Upper(max);
  int64_t count = 0;
  for (const auto& [position, entry] : bucket.queue) {
    if (entry.deadline >= ends) count += entry.task->size();
    if (count >= max) return max;
  }
  return count;
}

ModelQueue::Tasks ModelQueue::Take(Bucket& bucket, NanoTime now, Dropped* dropped) {
  // Tasks of later priorities may have earlier deadlines. Those that would be late in the batch that the head
  // allows are left out, and if there are many, the batch shrinks to the number of the others.
  int64_t room = BatchSize(bucket, now);
  room = std::clamp<int64_t>(InTime(bucket, room, now), 1, room);
  const NanoTime ends = now + bucket.latency.Upper(room);
  const auto& preferred = options_.preferred_batch_sizes;
  const auto max =
      std::find_if(preferred.rbegin(), preferred.rend(), [room](int64_t size) { return size <= room; });
  if (max != preferred.rend()) room = *max;
  Tasks batch;
  // First, so that no task is lost if there is no memory.
  batch.reserve(std::min(static_cast<size_t>(room), bucket.queue.size()));
  int64_t taken = 0;
  for (auto it = bucket.queue.begin(); it != bucket.queue.end() && taken < room;) {
    if (!KeepWaiting(bucket, it, now, dropped)) continue;
    const int64_t size = it->second.task->size();
    // Skip a task that does not fit in the rest of the batch or would be late; a later one may fit.
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
