// The daemon's own scheduler, run on simulated devices.
#pragma once

#include <cstdint>
#include <vector>

#include "server/batching/scheduler.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

class SchedulerPolicy final : public Policy {
 public:
  // Expects one BatcherOptions per model. Like the daemon's warm-up, teaches the scheduler the noise-free
  // times of batches of size one and of the maximum size of each bucket; of all sizes, if they were measured.
  SchedulerPolicy(const SchedulerOptions& options, const std::vector<BatcherOptions>& batchers,
                  const std::vector<ModelOptions>& models);

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  void Failed(int model, int instance, absl::Time now,
              std::vector<std::unique_ptr<BatchTask>>* tasks) override {
    scheduler_.Failed(ids_[model], instance, now, tasks);
  }
  absl::Time wake_at() const override { return scheduler_.wake_at(); }

  // Push fails from now on.
  void Close(int model) { scheduler_.Close(ids_[model]); }

  // See Scheduler::TakeDemand, of all models.
  absl::Duration TakeDemand() { return scheduler_.TakeDemand(); }

 private:
  void Load(int model);
  void RejectDropped();

  const std::vector<BatcherOptions> batchers_;
  const std::vector<ModelOptions> models_;
  Scheduler scheduler_;
  std::vector<Scheduler::ModelId> ids_;
  // The index of the model with this scheduler id.
  std::vector<int> by_id_;
  std::vector<Scheduler::Dropped> dropped_;
};

}  // namespace saccade::server::simulation
