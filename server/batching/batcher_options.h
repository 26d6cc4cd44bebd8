// How requests of one model are batched: Triton's dynamic_batching settings, with Triton's meaning.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

// Limits for the requests of one priority level.
struct QueuePolicy {
  // Maximum number of queued tasks of this level, delayed ones included, whatever the number of their items;
  // 0 means only BatcherOptions::max_queue_size applies.
  int64_t max_queue_size = 0;

  // Maximum time from its arrival that a request may be queued. Infinite by default, because most clients set
  // a deadline instead.
  absl::Duration timeout = absl::InfiniteDuration();

  // kReject: reject a request when its timeout has passed. kDelay: keep it, behind all requests that are in
  // time.
  enum class TimeoutAction { kReject, kDelay };
  TimeoutAction timeout_action = TimeoutAction::kReject;

  // True if a request's own timeout applies where it is shorter than `timeout`.
  bool allow_timeout_override = false;
};

struct BatcherOptions {
  // Maximum number of items in one forward pass. On a CPU larger batches gain little, and every request waits
  // for the whole pass.
  int64_t max_batch_size = 8;

  // Batch sizes that are worth more than the sizes between them (e.g. because a graph is recorded for them),
  // ascending. An instance stops waiting for items when the largest is queued, and a batch is cut to the
  // largest preferred size that it fills.
  std::vector<int64_t> preferred_batch_sizes = {};

  // Maximum number of queued items, over all buckets and levels. An unbounded queue would turn overload into
  // memory exhaustion and into late answers for all requests. At least max_batch_size, otherwise a full batch
  // could never form.
  int64_t max_queue_size = 256;

  // Maximum time that an idle instance waits for a larger batch, counted from the arrival of the oldest
  // request. It waits only if the learned latencies say that waiting pays. Infinite leaves the decision to
  // these and to the deadlines; zero never waits.
  absl::Duration max_queue_delay = absl::InfiniteDuration();

  // Priority levels are 1 (first) to priority_levels; a request without a level has default_priority_level. 0
  // disables levels: priorities are numbers from -kMaxPriority to kMaxPriority, numbers beyond count as the
  // nearest of these, and default_policy applies to all requests.
  int priority_levels = 0;
  int default_priority_level = 0;

  QueuePolicy default_policy = {};
  // By level; levels without an entry have default_policy.
  std::map<int, QueuePolicy> level_policies = {};

  // Share of the device relative to other models' weights, while all of them have work.
  double weight = 1;

  // Number of the device's cores that one forward pass uses.
  int threads = 1;

  // Class of tasks with a request's priority: lower ones go first, and 0 asks for the default.
  int64_t ClassOf(int priority) const;
  // The same for rooms where larger numbers go first.
  int UrgencyOf(int priority) const { return static_cast<int>(-ClassOf(priority)); }
  const QueuePolicy& PolicyOf(int64_t priority_class) const;
  // Maximum number of items of one request of this priority that an empty queue accepts, in full batches of
  // one bucket.
  int64_t MaxItemsOfRequest(int priority) const;
};

// INVALID_ARGUMENT states the option, its value and what is expected.
absl::Status CheckOptions(const BatcherOptions& options);

}  // namespace saccade::server
