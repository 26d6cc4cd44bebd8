// Who batches: the daemon's scheduler, or what it is compared with. All see the same requests.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/batching/batch_task.h"

namespace saccade::server::simulation {

class Policy {
 public:
  struct Batch {
    int model = 0;
    int instance = 0;
    std::vector<std::unique_ptr<BatchTask>> tasks;
  };

  virtual ~Policy() = default;

  // Takes `task` only if OK. What it refuses later, it rejects.
  virtual absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) = 0;

  // The next batch, for an instance that then computes; nothing if none is due.
  virtual std::optional<Batch> Next(absl::Time now) = 0;

  // The instance is idle again. `learn`: its pass was an ordinary one, which tells how long passes take.
  virtual void Finished(int model, int instance, absl::Time now, bool learn) = 0;

  // When Next may have something although nothing else has happened.
  virtual absl::Time wake_at() const = 0;
};

}  // namespace saccade::server::simulation
