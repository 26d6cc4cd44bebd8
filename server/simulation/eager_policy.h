// The simplest policy that knows shapes and deadlines. An idle instance immediately takes up to
// max_batch_size items of the bucket whose first task has the earliest deadline. It never waits for a larger
// batch, and drops tasks whose deadline has passed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "server/simulation/idle_instances.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

class EagerPolicy final : public Policy {
 public:
  EagerPolicy(int64_t max_batch_size, const std::vector<ModelOptions>& models)
      : max_batch_size_(max_batch_size), idle_(models), models_(models.size()) {}

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  absl::Time wake_at() const override { return absl::InfiniteFuture(); }

 private:
  // Ordered by deadline, then by arrival.
  using Queue = std::multimap<absl::Time, std::unique_ptr<BatchTask>>;
  using Buckets = std::map<int64_t, Queue>;

  const int64_t max_batch_size_;
  IdleInstances idle_;
  // Indexed by model. Empty buckets are erased.
  std::vector<Buckets> models_;
};

}  // namespace saccade::server::simulation
