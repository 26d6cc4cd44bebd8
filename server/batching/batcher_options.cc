#include "server/batching/batcher_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/call_head.h"

namespace saccade::server {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckPolicy(const BatcherOptions& options, const QueuePolicy& policy) {
  if (policy.max_queue_size < 0)
    return Wrong("max_queue_size of a queue policy is ", policy.max_queue_size, "; it has to be 0 or more");
  // With an infinite delay the scheduler chooses the waiting time itself, and takes timeouts into account.
  if (options.max_queue_delay == absl::InfiniteDuration() || policy.timeout > options.max_queue_delay)
    return policy.timeout > absl::ZeroDuration()
               ? absl::OkStatus()
               : Wrong("a queue policy's timeout is ", absl::FormatDuration(policy.timeout),
                       "; it has to be positive");
  return Wrong("a queue policy's timeout is ", absl::FormatDuration(policy.timeout),
               "; expected more than max_queue_delay, which is ",
               absl::FormatDuration(options.max_queue_delay));
}

absl::Status CheckPreferred(const BatcherOptions& options) {
  int64_t last = 0;
  for (const int64_t size : options.preferred_batch_sizes) {
    if (size <= last || size > options.max_batch_size)
      return Wrong("preferred_batch_sizes holds ", size,
                   "; expected ascending sizes from 1 to max_batch_size, which is ", options.max_batch_size);
    last = size;
  }
  return absl::OkStatus();
}

absl::Status CheckLevels(const BatcherOptions& options) {
  const int levels = options.priority_levels;
  if (levels < 0) return Wrong("priority_levels is ", levels, "; it has to be 0 or more");
  if (levels > 0 && (options.default_priority_level < 1 || options.default_priority_level > levels))
    return Wrong("default_priority_level is ", options.default_priority_level, "; expected 1 to ", levels,
                 " (priority_levels)");
  for (const auto& [level, policy] : options.level_policies) {
    if (level < 1 || level > levels)
      return Wrong("a queue policy is given for priority level ", level, "; expected 1 to ", levels,
                   " (priority_levels)");
    if (absl::Status sound = CheckPolicy(options, policy); !sound.ok()) return sound;
  }
  return absl::OkStatus();
}

}  // namespace

int64_t BatcherOptions::ClassOf(int priority) const {
  if (priority_levels > 0 && priority == 0) return default_priority_level;
  if (priority_levels > 0) return -int64_t{priority};
  return -int64_t{std::clamp(priority, -kMaxPriority, kMaxPriority)};
}

const QueuePolicy& BatcherOptions::PolicyOf(int64_t priority_class) const {
  const auto found = level_policies.find(static_cast<int>(priority_class));
  return found == level_policies.end() ? default_policy : found->second;
}

int64_t BatcherOptions::MaxItemsOfRequest(int priority) const {
  const int64_t tasks = PolicyOf(ClassOf(priority)).max_queue_size;
  if (tasks == 0 || tasks > max_queue_size / max_batch_size) return max_queue_size;
  return tasks * max_batch_size;
}

absl::Status CheckOptions(const BatcherOptions& options) {
  if (options.max_batch_size < 1)
    return Wrong("max_batch_size is ", options.max_batch_size, "; it has to be at least 1");
  if (options.max_queue_size < options.max_batch_size)
    return Wrong("max_queue_size is ", options.max_queue_size,
                 "; it has to be at least max_batch_size, which is ", options.max_batch_size);
  if (options.max_queue_delay < absl::ZeroDuration())
    return Wrong("max_queue_delay is ", absl::FormatDuration(options.max_queue_delay),
                 "; it must not be negative");
  if (!(options.weight > 0 && options.weight <= 1e6))
    return Wrong("weight is ", options.weight, "; it has to be positive, and at most 1000000");
  if (options.threads < 1) return Wrong("threads is ", options.threads, "; it has to be at least 1");
  for (absl::Status sound :
       {CheckPolicy(options, options.default_policy), CheckPreferred(options), CheckLevels(options)}) {
    if (!sound.ok()) return sound;
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
