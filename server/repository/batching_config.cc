#include "server/repository/batching_config.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace saccade::server {
namespace {

constexpr uint64_t kMaxDelayMicroseconds = 60'000'000;
constexpr uint64_t kMaxTimeoutMicroseconds = 3'600'000'000;
constexpr uint64_t kMaxLevels = 1000;

constexpr char kDefaultPolicy[] = "dynamic_batching.default_queue_policy";

absl::Status ReadPreferredSizes(const inference::ModelDynamicBatching& batching, const ConfigCheck& check,
                                BatcherOptions* options) {
  std::set<int64_t> sizes;
  for (const int size : batching.preferred_batch_size()) {
    if (size < 1 || size > options->max_batch_size) {
      return check.Error("dynamic_batching.preferred_batch_size", "is ", size, ", expected 1 to ",
                         options->max_batch_size, ", the max_batch_size");
    }
    sizes.insert(size);
  }
  options->preferred_batch_sizes.assign(sizes.begin(), sizes.end());
  return absl::OkStatus();
}

absl::Status ReadPolicy(const inference::ModelQueuePolicy& message, const std::string& field,
                        const ConfigCheck& check, QueuePolicy* policy) {
  using Message = inference::ModelQueuePolicy;
  const uint64_t timeout = message.default_timeout_microseconds();
  if (absl::Status range = check.Range(absl::StrCat(field, ".default_timeout_microseconds"), timeout, 0,
                                       kMaxTimeoutMicroseconds);
      !range.ok()) {
    return range;
  }
  const bool delay = message.timeout_action() == Message::DELAY;
  policy->timeout_action = delay ? QueuePolicy::TimeoutAction::kDelay : QueuePolicy::TimeoutAction::kReject;
  policy->timeout = timeout == 0 ? absl::InfiniteDuration() : absl::Microseconds(timeout);
  policy->allow_timeout_override = message.allow_timeout_override();
  policy->max_queue_size = message.max_queue_size();
  return absl::OkStatus();
}

absl::Status ReadLevels(const inference::ModelDynamicBatching& batching, const ConfigCheck& check,
                        BatcherOptions* options) {
  const uint64_t levels = batching.priority_levels();
  if (levels == 0) {
    // Triton ignores these fields without priority_levels; they can only be a mistake.
    constexpr char kNoLevels[] = "needs priority_levels; set that to the number of levels, or remove this";
    if (batching.default_priority_level() != 0)
      return check.Error("dynamic_batching.default_priority_level", kNoLevels);
    if (!batching.priority_queue_policy().empty())
      return check.Error("dynamic_batching.priority_queue_policy", kNoLevels);
    return absl::OkStatus();
  }
  absl::Status status = check.Range("dynamic_batching.priority_levels", levels, 1, kMaxLevels);
  if (status.ok()) {
    status =
        check.Range("dynamic_batching.default_priority_level", batching.default_priority_level(), 1, levels);
  }
  if (!status.ok()) return status;
  options->priority_levels = static_cast<int>(levels);
  options->default_priority_level = static_cast<int>(batching.default_priority_level());
  // Sorted, so that with several mistakes the same one is always reported.
  const std::map<uint64_t, inference::ModelQueuePolicy> policies(batching.priority_queue_policy().begin(),
                                                                 batching.priority_queue_policy().end());
  for (const auto& [level, policy] : policies) {
    const std::string field = MapEntryPath("dynamic_batching.priority_queue_policy", absl::StrCat(level));
    status = check.Range(field, level, 1, levels);
    if (status.ok()) {
      status = ReadPolicy(policy, field, check, &options->level_policies[static_cast<int>(level)]);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Bound on the items of the whole queue. Triton bounds the requests of each level separately, so this is what
// the levels may hold together if all batches are full, or 0 (the daemon's default) if a level has no bound.
int64_t QueueBound(const BatcherOptions& options) {
  int64_t sum = 0;
  for (int level = 1; level <= std::max(1, options.priority_levels); ++level) {
    const auto own = options.level_policies.find(level);
    const QueuePolicy& policy = own == options.level_policies.end() ? options.default_policy : own->second;
    if (policy.max_queue_size == 0) return 0;
    sum += policy.max_queue_size;
  }
  return sum * options.max_batch_size;
}

absl::Status CheckOrderCanBeKept(const BatcherOptions& options, const ConfigCheck& check) {
  if (options.priority_levels > 1) {
    return check.Error("dynamic_batching.preserve_ordering",
                       "is true together with priority_levels: ", options.priority_levels,
                       ", whose higher levels would overtake; set only one of the two");
  }
  const auto delays = [](const QueuePolicy& policy) {
    return policy.timeout < absl::InfiniteDuration() &&
           policy.timeout_action == QueuePolicy::TimeoutAction::kDelay;
  };
  bool delay = delays(options.default_policy);
  for (const auto& [level, policy] : options.level_policies) delay = delay || delays(policy);
  if (!delay) return absl::OkStatus();
  return check.Error(
      "dynamic_batching.preserve_ordering",
      "is true together with timeout_action: DELAY, which lets later requests overtake; expected REJECT");
}

}  // namespace

absl::Status ReadBatching(const inference::ModelDynamicBatching& batching, const ConfigCheck& check,
                          ModelSettings* settings) {
  BatcherOptions* const options = &settings->batching;
  absl::Status status = ReadPreferredSizes(batching, check, options);
  if (status.ok() && batching.has_max_queue_delay_microseconds()) {
    const uint64_t delay = batching.max_queue_delay_microseconds();
    status = check.Range("dynamic_batching.max_queue_delay_microseconds", delay, 0, kMaxDelayMicroseconds);
    options->max_queue_delay = absl::Microseconds(std::min(delay, kMaxDelayMicroseconds));
  }
  if (status.ok()) {
    status = ReadPolicy(batching.default_queue_policy(), kDefaultPolicy, check, &options->default_policy);
  }
  if (status.ok()) status = ReadLevels(batching, check, options);
  settings->preserve_ordering = batching.preserve_ordering();
  if (status.ok() && settings->preserve_ordering) status = CheckOrderCanBeKept(*options, check);
  options->max_queue_size = QueueBound(*options);
  return status;
}

}  // namespace saccade::server
