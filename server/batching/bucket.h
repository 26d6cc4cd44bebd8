// What waits for one bucket of a model, and what is known of that bucket: how fast it comes, how long it
// takes.
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

namespace saccade::server {

// Nanoseconds since the epoch; kNever for what has no end.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// How large batches have to be to carry the load of a level of priority and those before it, as it comes.
struct BatchTarget {
  // Once so many wait, nobody waits for more.
  int64_t size = 1;
  // With all batches so large, every request is in time, even one that has just missed a batch.
  int64_t largest = 1;
  // There is far more than can be carried.
  bool overloaded = false;
};

// Not thread-safe.
class Bucket {
 public:
  // The order in which tasks go: higher priority, earlier deadline, earlier arrival, earlier Push.
  struct Place {
    // The negative of the priority; kDelayedClass for what has waited longer than it may.
    int64_t priority_class = 0;
    int64_t deadline = kNever;
    int64_t arrival = 0;
    int64_t pushed = 0;
    auto operator<=>(const Place&) const = default;
  };
  static constexpr int64_t kDelayedClass = std::numeric_limits<int64_t>::max();

  struct Entry {
    std::unique_ptr<BatchTask> task;
    // The request's own; kNever if it gave none, unlike its place, which has one for everybody.
    int64_t deadline = kNever;
    // When it has waited too long; kNever for no limit.
    int64_t timeout = kNever;
    // What it was taken to cost the device, in nanoseconds, when it came.
    double cost = 0;
  };
  using Queue = absl::btree_map<Place, Entry>;

  Bucket(int64_t number, int64_t max_batch_size) : id(number), latency(max_batch_size) {}

  const int64_t id;
  Queue queue;
  // Pictures in it.
  int64_t queued = 0;
  // What they were taken to cost, in nanoseconds of one instance's time.
  double backlog = 0;
  LatencyModel latency;
  ArrivalRate arrivals;
  // How long its requests have from Push to their deadlines, in nanoseconds, on a running average.
  double patience = 0;
  // By the model's levels of priority, in their order.
  std::vector<BatchTarget> targets = std::vector<BatchTarget>(1);
  // How many pictures go together as of late.
  double usual = 1;
  // Memory was short: no more than so many go together until then.
  int64_t fits = 0;
  int64_t fits_until = 0;
  // When it was looked through for what is dead.
  int64_t swept = 0;
  // Since when no pass has told how long it took; what was doubted meanwhile has used up a part of it.
  int64_t learned = 0;
  // When it was last pushed to: buckets that nobody asks for are forgotten.
  int64_t used = 0;
};

}  // namespace saccade::server
