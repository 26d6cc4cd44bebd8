#include "server/batching/batcher.h"

#include <utility>

namespace saccade::server {
namespace {

void RejectAll(std::vector<BatchQueue::Dropped> dropped) {
  for (auto& [task, why] : dropped) task->Reject(std::move(why));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(const BatcherOptions& options, Clock* clock) {
  if (absl::Status sound = CheckOptions(options); !sound.ok()) return sound;
  return std::unique_ptr<Batcher>(new Batcher(options, clock));
}

Batcher::~Batcher() {
  std::vector<std::unique_ptr<BatchTask>> left;
  {
    absl::MutexLock lock(&mutex_);
    left = queue_.TakeAll();
  }
  for (auto& task : left)
    task->Reject(absl::UnavailableError("the model was unloaded before the request could run"));
}

absl::Status Batcher::Submit(std::unique_ptr<BatchTask>& task) {
  const absl::Time now = clock_->Now();
  std::vector<BatchQueue::Dropped> dropped;
  absl::Status taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = queue_.Push(task, now, &dropped);
  }
  RejectAll(std::move(dropped));
  return taken;
}

std::vector<std::unique_ptr<BatchTask>> Batcher::Take() {
  for (;;) {
    BatchQueue::Polled polled;
    bool drained = false;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time ready_at = queue_.ready_at();
      // Holds as soon as there is a reason to look again; the clock brings the moment itself. It must not ask
      // the clock, which evaluates it.
      auto changed = [this, ready_at]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return queue_.closed() || queue_.ready_at() != ready_at || ready_at == absl::InfinitePast();
      };
      clock_->AwaitUntil(&mutex_, absl::Condition(&changed), ready_at);
      polled = queue_.Poll(clock_->Now());
      drained = queue_.closed() && queue_.queued() == 0;
    }
    RejectAll(std::move(polled.dropped));
    if (!polled.batch.empty() || drained) return std::move(polled.batch);
  }
}

void Batcher::Close() {
  absl::MutexLock lock(&mutex_);
  queue_.Close();
}

int64_t Batcher::queued() const {
  absl::MutexLock lock(&mutex_);
  return queue_.queued();
}

}  // namespace saccade::server
