// Interface of a batching policy: the daemon's scheduler, or one it is compared with. All policies see the
// same requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"

namespace saccade::server::simulation {

class Policy {
 public:
  struct Batch {
    int model = 0;
    int instance = 0;
    std::vector<std::unique_ptr<BatchTask>> tasks;
    // True if the thread that brought a request computes it (TinyBatch).
    bool tiny = false;
  };

  virtual ~Policy() = default;

  // Takes ownership of `task` only if it returns OK. A task that is dropped later is ended with Reject().
  virtual absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) = 0;

  // Predicts what Push() of one item would return, as the daemon asks before it decodes a picture. `buckets`
  // as for Scheduler::Consider.
  virtual absl::Status Consider(int /*model*/, const BatchTask::Traits& /*traits*/,
                                absl::Span<const int64_t> /*buckets*/, absl::Time /*now*/) {
    return absl::OkStatus();
  }

  // Ends tasks that are cancelled or late, whether or not there is a batch for an instance.
  virtual void Sweep(absl::Time /*now*/) {}

  // The next batch, whose instance is busy until Finished(). nullopt if no batch is due.
  virtual std::optional<Batch> Next(absl::Time now) = 0;

  // Marks the instance idle. `learn` is true if the pass succeeded, so that its time may be used to estimate
  // latency.
  virtual void Finished(int model, int instance, absl::Time now, bool learn) = 0;

  // In place of Finished() for a pass that computed nothing. Takes `*tasks` if they are tried once more.
  virtual void Failed(int model, int instance, absl::Time now,
                      std::vector<std::unique_ptr<BatchTask>>* /*tasks*/) {
    Finished(model, instance, now, /*learn=*/false);
  }

  // The time at which Next() may return a batch even if no other event happens before.
  virtual absl::Time wake_at() const = 0;
};

}  // namespace saccade::server::simulation
