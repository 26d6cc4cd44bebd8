// What the batcher queues: a request's share of a forward pass, whatever it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/core/cancellation.h"

namespace saccade::server {

// A task is queued by Batcher::Submit and then meets exactly one fate: it comes out of Batcher::Take, or
// Reject is called on it once, after which it is destroyed.
class BatchTask {
 public:
  // All that the batcher needs to know; fixed for the life of the task.
  struct Traits {
    // Pictures. They stay in one batch.
    int64_t size = 1;
    // Which tasks may share a batch: those of one bucket, whatever its number stands for.
    int64_t bucket = 0;
    // Higher goes first. With priority levels, level n is -n, and 0 stands for the default level.
    int priority = 0;
    // When the request reached the server: the delay and the queue timeout count from here, so time spent in
    // the decode pool is not waited for again.
    absl::Time arrival = absl::UnixEpoch();
    absl::Time deadline = absl::InfiniteFuture();
    // How long after its arrival it may still wait, if its model lets requests say so (QueuePolicy).
    absl::Duration timeout = absl::InfiniteDuration();
    // Shared with whoever watches the client; may be null.
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

  // Answers the request with an error. Called at most once, with no lock of the batcher held, on the thread
  // that found out (of Submit, Take, DropDead or the batcher's destructor), so it must not block.
  virtual void Reject(absl::Status why) = 0;

 private:
  const Traits traits_;
};

// OK, or CANCELLED or DEADLINE_EXCEEDED with how long the task waited.
absl::Status CheckAlive(const BatchTask::Traits& task, absl::Time now);

// Rejects and removes what was cancelled or can no longer be in time; keeps the order of the rest. For the
// last look just before compute. Not thread-safe with regard to `tasks`.
void DropDead(std::vector<std::unique_ptr<BatchTask>>& tasks, absl::Time now);

}  // namespace saccade::server
