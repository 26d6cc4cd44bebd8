// Triton's dynamic batcher with its defaults. Each model has one queue in order of arrival, whatever the
// shapes. The first request that does not fit, because its shape differs or the batch is full, causes the
// requests before it to be sent. Otherwise an idle instance waits for a larger batch until the oldest request
// has waited for max_queue_delay. The queue is unbounded, and deadlines are ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "server/simulation/idle_instances.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

struct TritonOptions {
  int64_t max_batch_size = 64;
  // Ascending. A batch that reaches one of these sizes is sent at once.
  std::vector<int64_t> preferred_batch_sizes = {};
  absl::Duration max_queue_delay = absl::ZeroDuration();
};

class TritonPolicy final : public Policy {
 public:
  TritonPolicy(const TritonOptions& options, const std::vector<ModelOptions>& models)
      : options_(options), idle_(models), queues_(models.size()) {}

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  absl::Time wake_at() const override;

 private:
  struct Due {
    // The number of tasks, from the front of the queue, of the next batch; and when the batch is due.
    size_t tasks = 0;
    absl::Time at;
  };

  // REQUIRES: the queue is not empty.
  Due DueOf(const std::deque<std::unique_ptr<BatchTask>>& queue) const;

  const TritonOptions options_;
  IdleInstances idle_;
  std::vector<std::deque<std::unique_ptr<BatchTask>>> queues_;
};

}  // namespace saccade::server::simulation
