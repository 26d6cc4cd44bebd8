// TensorFlow Serving's batch scheduler: a queue of batches a model; a request goes into the last one,
// whatever its shape, and mixed shapes are padded to what holds all. A batch is processed when it is full or
// its first request has waited for batch_timeout. Beyond max_enqueued_batches requests are refused; deadlines
// mean nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "server/simulation/device.h"
#include "server/simulation/idle_instances.h"
#include "server/simulation/policy.h"

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
  // All but the last of a queue take no more.
  std::vector<std::deque<Enqueued>> queues_;
};

}  // namespace saccade::server::simulation
