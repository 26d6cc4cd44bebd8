// The part of ModelQueue that accepts and rejects tasks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/batch_target.h"
#include "server/batching/model_queue.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

// Assumed time to the deadline of a request without one; orders it among requests with deadlines.
constexpr Nanos kUsualPatience = 30 * kSecond;
// A request is accepted if its expected completion time is at most this multiple of the time it has left.
// Above 1, because queued tasks may still be dropped or cancelled, and batches grow under load.
constexpr double kMaxOverrun = 1.6;
// Maximum number of priority levels; above it, a level without tasks is forgotten. Clients may use any number
// of levels.
constexpr size_t kMaxLevels = 32;
// If the estimate rejects every request, relax it after this many times the single-item latency. If the
// estimate was right, the cost is an occasional wasted pass.
constexpr double kDoubtAfter = 10;
// Likewise, after this many times the latency of a full batch, whose members the wasted pass could make late.
constexpr double kDoubtAfterFull = 2;
// What clients that a full queue rejects are told while no pass of its buckets has ended, and the least that
// they are told.
constexpr absl::Duration kUnknownRetry = absl::Seconds(1);
constexpr absl::Duration kMinRetry = absl::Milliseconds(10);
// Weight of the newest request in Bucket::patience.
constexpr double kPatienceWeight = 1.0 / 32;

}  // namespace

std::pair<Bucket::Position, Bucket::Entry> ModelQueue::PositionOf(const BatchTask::Traits& traits) {
  const int64_t priority_class = options_.ClassOf(traits.priority);
  const QueuePolicy& policy = options_.PolicyOf(priority_class);
  const NanoTime arrival(traits.arrival);
  Bucket::Entry entry;
  entry.own_class = priority_class;
  entry.deadline = NanoTime(traits.deadline);
  absl::Duration timeout = policy.timeout;
  if (policy.allow_timeout_override) timeout = std::min(timeout, traits.timeout);
  entry.timeout = arrival + Nanos(timeout);
  const Bucket::Position position{
      priority_class, entry.deadline == NanoTime::Never() ? arrival + kUsualPatience : entry.deadline,
      arrival, pushed_++};
  return {position, std::move(entry)};
}

// Rejected requests count too, because the load is what arrives.
void ModelQueue::Count(Bucket& bucket, const Bucket::Position& position, int64_t size, NanoTime now) {
  const Nanos left = position.deadline - now;
  bucket.patience += (bucket.patience == Nanos() ? 1 : kPatienceWeight) * (left - bucket.patience);
  bucket.arrivals.Add(size, now, RateMemory(bucket));
  bucket.together.Note(bucket.queued + bucket.computing + size, now, RateMemory(bucket));
  LevelOf(position.priority_class).arrivals.Add(size, now, kLevelMemory);
  if (levels_.size() > kMaxLevels) ForgetLevel(position.priority_class, now);
  if (--retarget_after_ <= 0) retarget_at_ = NanoTime();
  // A request that was rejected by Consider() may have more items than a batch, which would share several.
  const int64_t shared =
      std::min(std::max(size, TargetOf(bucket, position.priority_class).largest), options_.max_batch_size);
  demand_ += static_cast<double>(size) * bucket.latency.Mean(shared) / static_cast<double>(shared);
}

absl::Status ModelQueue::Push(std::unique_ptr<BatchTask>& task, NanoTime now, Nanos ahead, double instances,
                              Dropped* dropped) {
  const int64_t size = task->size();
  if (size < 1 || size > options_.max_batch_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", size, " items; this model accepts 1 to ", options_.max_batch_size));
  }
  if (absl::Status alive = CheckAlive(task->traits(), now.ToTime()); !alive.ok()) return alive;
  auto [position, entry] = PositionOf(task->traits());
  Bucket& bucket = Find(task->bucket(), now);
  Count(bucket, position, size, now);
  // Rejected requests never reach FindDue(), so refresh the batch targets first.
  UpdateTargets(now, instances);

  if (entry.deadline != NanoTime::Never()) {
    absl::Status in_time = CheckInTime(size, bucket, position, now, ahead, instances);
    if (absl::IsDeadlineExceeded(in_time)) Doubt(bucket, size, position.deadline - now, now);
    if (!in_time.ok()) return in_time;
  }
  absl::Status room = CheckRoom(position.priority_class, size, /*take=*/true, now, dropped);
  if (!room.ok()) {
    SetRetryAfter(room, WhenEmpty(ahead, instances));
    return room;
  }
  const int64_t shared = std::max(size, TargetOf(bucket, position.priority_class).largest);
  entry.cost = static_cast<double>(size) * bucket.latency.Mean(shared) / static_cast<double>(shared);
  entry.task = std::move(task);
  Add(bucket, position, std::move(entry));
  return absl::OkStatus();
}

absl::Status ModelQueue::Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets,
                                  NanoTime now, Nanos ahead, double instances, Dropped* dropped) {
  const auto [position, entry] = PositionOf(traits);
  UpdateTargets(now, instances);
  absl::Status refused = CheckRoom(position.priority_class, /*size=*/1, /*take=*/false, now, dropped);
  if (!refused.ok()) SetRetryAfter(refused, WhenEmpty(ahead, instances));
  if (refused.ok() && entry.deadline != NanoTime::Never())
    refused = CheckKnownInTime(buckets, position, now, ahead, instances);
  if (refused.ok()) return refused;
  Bucket& bucket = Find(buckets.front(), now);
  Count(bucket, position, traits.size, now);
  if (absl::IsDeadlineExceeded(refused)) Doubt(bucket, /*size=*/1, position.deadline - now, now);
  return refused;
}

// Returns an error if an item would be late in the first bucket and in all others that are known; an unknown
// first bucket is OK. Does not create buckets.
absl::Status ModelQueue::CheckKnownInTime(absl::Span<const int64_t> buckets, const Bucket::Position& position,
                                          NanoTime now, Nanos ahead, double instances) const {
  absl::Status refused;
  for (const int64_t id : buckets) {
    const auto known = buckets_.find(id);
    if (known == buckets_.end() && refused.ok()) return refused;
    if (known == buckets_.end()) continue;
    absl::Status in_time = CheckInTime(/*size=*/1, *known->second, position, now, ahead, instances);
    if (in_time.ok()) return in_time;
    if (refused.ok()) refused = std::move(in_time);
  }
  return refused;
}

// Relaxes the estimate after a request with `left` until its deadline was rejected because a pass over `size`
// items takes longer. The more time has passed since the last pass, the more it is relaxed; after a long time
// a single rejected request is enough to accept the next one.
void ModelQueue::Doubt(Bucket& bucket, int64_t size, Nanos left, NanoTime now) {
  // Known only from the warm-up: count from now.
  if (bucket.learned == NanoTime()) bucket.learned = now;
  LatencyModel& latency = bucket.latency;
  do {
    const Nanos patience =
        std::max(kDoubtAfter * latency.Upper(1), kDoubtAfterFull * latency.Upper(options_.max_batch_size));
    if (now - bucket.learned < patience || !latency.Doubt(left)) return;
    bucket.learned += patience;
  } while (latency.Upper(size) > left);
}

// Checks whether `size` more items of a class fit in the queue. If `take`, evicts tasks of later classes if
// necessary.
absl::Status ModelQueue::CheckRoom(int64_t priority_class, int64_t size, bool take, NanoTime now,
                                   Dropped* dropped) {
  const int64_t max_of_level = options_.PolicyOf(priority_class).max_queue_size;
  const auto level_full = [&] {
    return max_of_level > 0 && LevelOf(priority_class).own_tasks >= max_of_level;
  };
  const auto full = [&] { return queued_ + size > options_.max_queue_size; };
  if (level_full() || full()) SweepAll(now, dropped);
  if (level_full()) {
    const int64_t asked = options_.priority_levels > 0 ? priority_class : -priority_class;
    return absl::ResourceExhaustedError(absl::StrCat("the model's queue is full for priority ", asked, ": ",
                                                     LevelOf(priority_class).own_tasks, " of ", max_of_level,
                                                     " requests (max_queue_size) are queued; try again "
                                                     "later"));
  }
  if (!full()) return absl::OkStatus();
  int64_t behind = 0;
  for (const Level& level : levels_) {
    if (level.priority_class > priority_class) behind += level.own_items;
  }
  // No task is evicted for one that would not fit all the same.
  if (queued_ - behind + size > options_.max_queue_size) {
    return absl::ResourceExhaustedError(absl::StrCat("the model's queue is full: ", queued_, " of ",
                                                     options_.max_queue_size,
                                                     " items (max_queue_size) are queued; try again later"));
  }
  while (take && full()) EvictLastBehind(priority_class, dropped);
  return absl::OkStatus();
}

// The time until the queued tasks are computed, as far as is known.
absl::Duration ModelQueue::WhenEmpty(Nanos ahead, double instances) const {
  if (backlog_ <= Nanos()) return kUnknownRetry;
  return std::max(kMinRetry, ToDuration(ahead + backlog_ / instances));
}

// Returns the last task in queue order whose own class is behind `priority_class`, and its bucket. REQUIRES:
// there is one.
std::pair<Bucket*, Bucket::Queue::iterator> ModelQueue::LastBehind(int64_t priority_class) const {
  std::pair<Bucket*, Bucket::Queue::iterator> last;
  for (Bucket* bucket : waiting_) {
    for (auto it = bucket->queue.end(); it != bucket->queue.begin();) {
      --it;
      if (it->first.priority_class <= priority_class) break;
      // A delayed task is behind all others, whatever its own class is.
      if (it->second.own_class <= priority_class) continue;
      if (last.first == nullptr || it->first > last.second->first) last = {bucket, it};
      break;
    }
  }
  return last;
}

void ModelQueue::EvictLastBehind(int64_t priority_class, Dropped* dropped) {
  absl::Status why = absl::ResourceExhaustedError(
      absl::StrCat("the model's queue is full (max_queue_size is ", options_.max_queue_size,
                   "), and a request of higher priority replaced this one; try again later"));
  SetRetryAfter(why, WhenEmpty(/*ahead=*/Nanos(), /*instances=*/1));
  auto [bucket, latest] = LastBehind(priority_class);
  Drop(*bucket, latest, std::move(why), dropped);
}

absl::Status ModelQueue::CheckInTime(int64_t size, const Bucket& bucket, const Bucket::Position& position,
                                     NanoTime now, Nanos ahead, double instances) const {
  if (!bucket.latency.known()) return absl::OkStatus();
  const Nanos left = position.deadline - now;
  const Nanos alone = bucket.latency.Upper(size);
  if (alone > left) return TooLate(alone, left);
  const BatchTarget& target = TargetOf(bucket, position.priority_class);
  Nanos ends;
  Nanos bearable = left;
  if (target.overloaded) {
    // Accept only what the next batches can take. The batches after those will be filled by later requests.
    const int64_t usual = std::min(target.size, static_cast<int64_t>(std::ceil(bucket.usual)));
    const int64_t batch = std::min(usual, bucket.latency.LargestWithin(left, options_.max_batch_size));
    const Nanos next = bucket.latency.Upper(std::max(size, batch));
    ends = ahead + std::max(next, bucket.backlog / instances + alone);
  } else {
    bearable = kMaxOverrun * left;
    ends = ahead + backlog_ / instances + alone;
    if (ends > bearable) ends = ahead + WorkAhead(position) / instances + alone;
  }
  if (ends <= bearable) return absl::OkStatus();
  absl::Status why = absl::ResourceExhaustedError(
      absl::StrCat("the model is overloaded: behind the queued requests this one would complete about ",
                   absl::FormatDuration(ToDuration(ends)), " from now, and ",
                   absl::FormatDuration(ToDuration(left)), " are left before its deadline; try again later"));
  SetShedReason(why, ShedReason::kPredictedLate);
  SetRetryAfter(why, ToDuration(ends - left));
  return why;
}

// Cost of the queued tasks that go before `position`, as time of one instance. Assumes that within
// a class the cost is spread evenly over the range of deadlines.
Nanos ModelQueue::WorkAhead(const Bucket::Position& position) const {
  Nanos ahead;
  for (const Level& level : levels_) {
    if (level.priority_class < position.priority_class) ahead += level.backlog;
    if (level.priority_class != position.priority_class || level.backlog == Nanos()) continue;
    NanoTime first = NanoTime::Never();
    NanoTime last;
    for (const Bucket* bucket : waiting_) {
      first = std::min(first, bucket->queue.begin()->first.deadline);
      last = std::max(last, bucket->queue.rbegin()->first.deadline);
    }
    const Nanos span = std::max(Nanos(1), last - first);
    ahead += level.backlog * std::clamp((position.deadline - first) / span, 0.0, 1.0);
  }
  return ahead;
}

}  // namespace saccade::server
