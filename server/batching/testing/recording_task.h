// Test helper: a task that records its outcome.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "server/batching/batch_task.h"

namespace saccade::server {

// The outcome of a task, which it outlives. `why` may be read once `rejections` is not zero.
struct Fate {
  std::atomic<int> rejections{0};
  absl::Status why;
  std::atomic<bool> destroyed{false};
  Cancellation cancellation;
};

class RecordingTask final : public BatchTask {
 public:
  RecordingTask(std::shared_ptr<Fate> fate, Traits traits)
      : BatchTask(std::move(traits)), fate_(std::move(fate)) {}
  ~RecordingTask() override { fate_->destroyed = true; }

  void Reject(absl::Status why) override {
    fate_->why = std::move(why);
    ++fate_->rejections;
  }

  const std::shared_ptr<Fate>& fate() const { return fate_; }

 private:
  const std::shared_ptr<Fate> fate_;
};

// A task, and the Fate that records its outcome. Cancel it through Fate::cancellation.
struct Watched {
  std::unique_ptr<BatchTask> task;
  std::shared_ptr<Fate> fate;
};

inline Watched MakeTask(BatchTask::Traits traits) {
  auto fate = std::make_shared<Fate>();
  traits.cancellation = std::shared_ptr<const Cancellation>(fate, &fate->cancellation);
  return {std::make_unique<RecordingTask>(fate, std::move(traits)), fate};
}

inline const std::shared_ptr<Fate>& FateOf(const std::unique_ptr<BatchTask>& task) {
  return static_cast<const RecordingTask&>(*task).fate();
}

}  // namespace saccade::server
