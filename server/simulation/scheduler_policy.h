// The daemon's scheduler as it is, in front of simulated devices.
#pragma once

#include <cstdint>
#include <vector>

#include "server/batching/scheduler.h"
#include "server/simulation/device.h"
#include "server/simulation/policy.h"

namespace saccade::server::simulation {

class SchedulerPolicy final : public Policy {
 public:
  // One BatcherOptions a model. As the daemon's warm-up does, each bucket's batches of one and of the largest
  // size are shown to the scheduler, without noise.
  SchedulerPolicy(const SchedulerOptions& options, const std::vector<BatcherOptions>& batchers,
                  const std::vector<ModelOptions>& models);

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  absl::Time wake_at() const override { return scheduler_.wake_at(); }

  // As the daemon stops a model, and loads it anew. REQUIRES for Reload: none of its instances computes.
  void Close(int model) { scheduler_.Close(ids_[model]); }
  void Reload(int model);

  int64_t queued(int model) const { return scheduler_.queued(ids_[model]); }

 private:
  void Load(int model);
  void RejectDropped();

  const std::vector<BatcherOptions> batchers_;
  const std::vector<ModelOptions> devices_;
  Scheduler scheduler_;
  std::vector<Scheduler::ModelId> ids_;
  // By id.
  std::vector<int> models_;
  std::vector<Scheduler::Dropped> dropped_;
};

}  // namespace saccade::server::simulation
