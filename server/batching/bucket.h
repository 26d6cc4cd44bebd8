// The queue of one bucket of a model, with its arrival rate and learned latencies.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "server/batching/arrival_rate.h"
#include "server/batching/batch_task.h"
#include "server/batching/latency_model.h"
#include "server/batching/nanos.h"
#include "server/batching/recent_max.h"

namespace saccade::server {

// Batch sizes needed for the load of a priority level together with all levels before it.
struct BatchTarget {
  // Once this many items are queued, an instance does not wait for more.
  int64_t size = 1;
  // The largest batch size at which every request meets its deadline, including one that has just missed a
  // batch, provided that all batches have their largest size.
  int64_t largest = 1;
  // True if the load clearly exceeds the capacity.
  bool overloaded = false;
};

// Not thread-safe.
class Bucket {
 public:
  // Position in the queue. Tasks are ordered by higher priority, earlier deadline, earlier arrival, earlier
  // Push.
  struct Position {
    // The negated priority, or kDelayedClass if the task's queue timeout has passed.
    int64_t priority_class = 0;
    NanoTime deadline = NanoTime::Never();
    NanoTime arrival;
    int64_t pushed = 0;
    auto operator<=>(const Position&) const = default;
  };
  static constexpr int64_t kDelayedClass = std::numeric_limits<int64_t>::max();

  struct Entry {
    std::unique_ptr<BatchTask> task;
    // The request's own deadline; Never() if it set none. Position::deadline is always finite.
    NanoTime deadline = NanoTime::Never();
    // Time at which the queue timeout passes; Never() for no limit.
    NanoTime timeout = NanoTime::Never();
    // Estimated device time of the task when it was queued.
    Nanos cost;
    // Position::priority_class as it was before the queue timeout passed.
    int64_t own_class = 0;
  };
  using Queue = absl::btree_map<Position, Entry>;

  Bucket(int64_t number, int64_t max_batch_size) : id(number), latency(max_batch_size) {}

  const int64_t id;
  Queue queue;
  // Number of items in `queue`.
  int64_t queued = 0;
  // Sum of Entry::cost over `queue`, as time of one instance.
  Nanos backlog;
  LatencyModel latency;
  ArrivalRate arrivals;
  // Running average of the time from Push to the deadline.
  Nanos patience;
  // By index of the model's priority levels.
  std::vector<BatchTarget> targets = std::vector<BatchTarget>(1);
  // Number of items in passes that have begun and not ended.
  int64_t computing = 0;
  // The items that were in flight at once: queued, being computed, or just rejected.
  RecentMax together;
  // Number of items in passes that have ended, without those of the warm-up.
  int64_t computed = 0;
  // Running average of the batch size.
  double usual = 1;
  // After a pass ran out of memory: maximum batch size, valid until `fits_until`.
  int64_t fits = 0;
  NanoTime fits_until;
  // Last time the whole queue was checked for cancelled and late tasks.
  NanoTime swept;
  // Time of the last finished pass. Each relaxation of the estimate (ModelQueue::Doubt) moves it forward.
  NanoTime learned;
  // Last use. If there are too many buckets, the least recently used empty one is removed.
  NanoTime used;
};

}  // namespace saccade::server
