// The unit that is queued: the part of a request that goes into one forward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/core/cancellation.h"

namespace saccade::server {

// A task queued by DeviceModel::Submit is either returned by DeviceModel::Take (or as a TinyBatch), or Reject
// is called on it once, after which it is destroyed. Exactly one of the two happens.
class BatchTask {
 public:
  // Everything that the scheduler needs to know; constant during the life of the task.
  struct Traits {
    // Number of items. They stay in one batch.
    int64_t size = 1;
    // Only tasks with the same bucket number share a batch. The scheduler does not interpret the number.
    int64_t bucket = 0;
    // Higher values go first. With priority levels, level n is -n, and 0 selects the default level.
    int priority = 0;
    // When the request reached the server. Queue delay and queue timeout count from here, so time spent in
    // the decode pool is included.
    absl::Time arrival = absl::UnixEpoch();
    absl::Time deadline = absl::InfiniteFuture();
    // Maximum time from `arrival` that the task may wait. Used only if its QueuePolicy allows requests to
    // override the timeout.
    absl::Duration timeout = absl::InfiniteDuration();
    // Set when the client cancels the call; shared with the code that watches the client. May be null.
    std::shared_ptr<const Cancellation> cancellation = nullptr;

    bool cancelled() const { return cancellation != nullptr && cancellation->cancelled(); }
  };

  explicit BatchTask(Traits traits) : traits_(std::move(traits)) {}
  virtual ~BatchTask() = default;
  BatchTask(const BatchTask&) = delete;
  BatchTask& operator=(const BatchTask&) = delete;

  const Traits& traits() const { return traits_; }
  int64_t size() const { return traits_.size; }
  int64_t bucket() const { return traits_.bucket; }
  int priority() const { return traits_.priority; }
  absl::Time arrival() const { return traits_.arrival; }
  absl::Time deadline() const { return traits_.deadline; }
  absl::Duration timeout() const { return traits_.timeout; }
  bool cancelled() const { return traits_.cancelled(); }

  // Fails the request with `why`. Called at most once, without any lock of the DeviceGroup held, on the
  // thread that detected the reason (in Submit, Consider, Take, Finished, Close, Sweep, DropDead or a
  // destructor). Must not block.
  virtual void Reject(absl::Status why) = 0;

 private:
  const Traits traits_;
};

// Returns OK, or CANCELLED or DEADLINE_EXCEEDED with the time that the task has waited.
absl::Status CheckAlive(const BatchTask::Traits& task, absl::Time now);

// Rejects and removes tasks that were cancelled or are past their deadline; keeps the order of the others.
// For a final check directly before the forward pass. Not thread-safe with regard to `tasks`.
template <typename Task>
void DropDead(std::vector<std::unique_ptr<Task>>& tasks, absl::Time now) {
  std::erase_if(tasks, [now](const std::unique_ptr<Task>& task) {
    absl::Status alive = CheckAlive(task->traits(), now);
    if (alive.ok()) return false;
    task->Reject(std::move(alive));
    return true;
  });
}

}  // namespace saccade::server
