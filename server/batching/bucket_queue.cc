#include "server/batching/bucket_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::Status CheckWaiting(const BatchTask& task, const BatcherOptions& options, absl::Time now) {
  if (absl::Status alive = CheckAlive(task.traits(), now); !alive.ok()) return alive;
  const absl::Duration waited = now - task.arrival();
  if (waited < options.queue_timeout) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the request has waited ", absl::FormatDuration(waited),
                                                  " for an instance; the model's queue_timeout is ",
                                                  absl::FormatDuration(options.queue_timeout)));
}

void BucketQueue::Push(const Place& place, std::unique_ptr<BatchTask> task) {
  queued_ += task->size();
  oldest_arrival_ = std::min(oldest_arrival_, task->arrival());
  earliest_deadline_ = std::min(earliest_deadline_, task->deadline());
  waiting_.emplace(place, std::move(task));
}

void BucketQueue::DropDead(absl::Time now, std::vector<Dropped>* dropped) {
  const size_t before = dropped->size();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    absl::Status alive = CheckWaiting(*it->second, *options_, now);
    if (alive.ok()) {
      ++it;
      continue;
    }
    queued_ -= it->second->size();
    dropped->push_back({std::move(it->second), std::move(alive)});
    it = waiting_.erase(it);
  }
  if (dropped->size() != before) FindUrgency();
}

std::vector<std::unique_ptr<BatchTask>> BucketQueue::TakeBatch() {
  std::vector<std::unique_ptr<BatchTask>> batch;
  int64_t room = options_->max_batch_size;
  for (auto it = waiting_.begin(); it != waiting_.end() && room > 0;) {
    const int64_t size = it->second->size();
    if (size > room) {
      ++it;
      continue;
    }
    room -= size;
    queued_ -= size;
    batch.push_back(std::move(it->second));
    it = waiting_.erase(it);
  }
  FindUrgency();
  return batch;
}

std::vector<std::unique_ptr<BatchTask>> BucketQueue::TakeAll() {
  std::vector<std::unique_ptr<BatchTask>> all;
  for (auto& [place, task] : waiting_) all.push_back(std::move(task));
  waiting_.clear();
  queued_ = 0;
  FindUrgency();
  return all;
}

absl::Time BucketQueue::ready_at() const {
  if (waiting_.empty()) return absl::InfiniteFuture();
  // Below max_batch_size all that waits fits into one batch, so what is true of the queue is true of the
  // batch.
  if (queued_ >= options_->max_batch_size) return absl::InfinitePast();
  const absl::Time due = oldest_arrival_ + options_->max_queue_delay;
  return earliest_deadline_ <= due ? absl::InfinitePast() : due;
}

void BucketQueue::FindUrgency() {
  oldest_arrival_ = absl::InfiniteFuture();
  earliest_deadline_ = absl::InfiniteFuture();
  for (const auto& [place, task] : waiting_) {
    oldest_arrival_ = std::min(oldest_arrival_, task->arrival());
    earliest_deadline_ = std::min(earliest_deadline_, task->deadline());
  }
}

}  // namespace saccade::server
