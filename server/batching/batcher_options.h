// How one model's requests are batched: Triton's dynamic_batching settings, with Triton's meaning.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

// What a priority level allows its requests.
struct QueuePolicy {
  // Pictures waiting at this level; 0 leaves it to BatcherOptions::max_queue_size.
  int64_t max_queue_size = 0;

  // How long after its arrival a request may still be waiting. Infinite, because most clients say what they
  // want by their deadline.
  absl::Duration timeout = absl::InfiniteDuration();

  // Whether a request whose timeout has passed is refused, or goes on waiting behind all that are in time.
  enum class TimeoutAction { kReject, kDelay };
  TimeoutAction timeout_action = TimeoutAction::kReject;

  // Whether a request's own timeout counts, where it is shorter than this one.
  bool allow_timeout_override = false;
};

struct BatcherOptions {
  // Pictures in one forward pass. On a CPU the gain from more is small and everybody waits for the whole
  // pass.
  int64_t max_batch_size = 8;

  // Sizes that are worth more than those between them (a graph is recorded for them, say), ascending. Once
  // the largest is there nobody waits for more, and of what is there as many go as the largest that they
  // fill.
  std::vector<int64_t> preferred_batch_sizes = {};

  // Pictures waiting, over all buckets and levels. Bounded, because an unbounded queue turns overload into
  // memory exhaustion and into answers that come too late for everybody. At least max_batch_size, or a full
  // batch could never gather.
  int64_t max_queue_size = 256;

  // The longest that an idle instance waits for company, counted from the oldest request's arrival; it waits
  // only where what is known of the model's latency says that waiting pays. Infinite leaves it to that
  // knowledge and to the deadlines; zero never waits.
  absl::Duration max_queue_delay = absl::InfiniteDuration();

  // Levels 1 (first) to priority_levels; what names none has the default level. 0 knows no levels: priorities
  // are any numbers, and default_policy is everybody's.
  int priority_levels = 0;
  int default_priority_level = 0;

  QueuePolicy default_policy = {};
  // By level; a level that is not here has the default.
  std::map<int, QueuePolicy> level_policies = {};

  // Its share of the device, against other models' weights, while all of them have work.
  double weight = 1;

  // Cores that one forward pass takes of its device's.
  int threads = 1;
};

// INVALID_ARGUMENT names the option, its value and what it has to be.
absl::Status CheckOptions(const BatcherOptions& options);

}  // namespace saccade::server
