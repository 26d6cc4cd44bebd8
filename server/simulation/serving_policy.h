// TensorFlow Serving's batch scheduler. Each model has a queue of batches. A request joins the last batch
// whatever its shape; mixed shapes are padded to the smallest shape that holds all. A batch is processed when
// it is full or when its first request has waited for batch_timeout. Requests beyond max_enqueued_batches are
// refused. Deadlines are ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "server/simulation/idle_instances.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

struct ServingOptions {
  int64_t max_batch_size = 64;
  absl::Duration batch_timeout = absl::ZeroDuration();
  size_t max_enqueued_batches = 10;
};

class ServingPolicy final : public Policy {
 public:
  ServingPolicy(const ServingOptions& options, const std::vector<ModelOptions>& models)
      : options_(options), idle_(models), queues_(models.size()) {}

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  absl::Time wake_at() const override;

 private:
  struct Enqueued {
    int64_t pictures = 0;
    absl::Time since;
    std::vector<std::unique_ptr<BatchTask>> tasks;
  };

  // REQUIRES: the queue is not empty.
  absl::Time DueAt(const std::deque<Enqueued>& queue) const;

  const ServingOptions options_;
  IdleInstances idle_;
  // By model. Only the last batch of a queue accepts further tasks.
  std::vector<std::deque<Enqueued>> queues_;
};

}  // namespace saccade::server::simulation
