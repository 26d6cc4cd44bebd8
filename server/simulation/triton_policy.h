// Triton's dynamic batcher: one queue a model in order of arrival, whatever the shapes. The first request
// that does not fit, because it has another shape or the batch is full, sends what is before it; otherwise an
// idle instance waits for company until the oldest has waited for max_queue_delay. The queue has no bound,
// and a deadline no meaning: these are its defaults.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "server/simulation/device.h"
#include "server/simulation/idle_instances.h"
#include "server/simulation/policy.h"

namespace saccade::server::simulation {

struct TritonOptions {
  int64_t max_batch_size = 64;
  // Ascending; a batch that has such a size goes at once.
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
    // How many tasks from the front, and when.
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
