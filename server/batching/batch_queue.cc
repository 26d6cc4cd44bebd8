#include "server/batching/batch_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::Status BatchQueue::Push(std::unique_ptr<BatchTask>& task, absl::Time now,
                              std::vector<Dropped>* dropped) {
  if (closed_) {
    return absl::UnavailableError(
        "the model takes no more requests: it is being unloaded or the server is "
        "shutting down; try another replica");
  }
  const int64_t size = task->size();
  if (size < 1 || size > options_.max_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request holds ", size, " pictures; this model takes 1 to ", options_.max_batch_size));
  }
  if (absl::Status alive = CheckWaiting(*task, now); !alive.ok()) return alive;
  if (queued_ + size > options_.max_queue_size) DropDead(now, dropped);
  if (queued_ + size > options_.max_queue_size) {
    return absl::ResourceExhaustedError(absl::StrCat("the model's queue is full: ", queued_, " of ",
                                                     options_.max_queue_size,
                                                     " pictures (max_queue_size) wait; try again later"));
  }
  queued_ += size;
  oldest_arrival_ = std::min(oldest_arrival_, task->arrival());
  earliest_deadline_ = std::min(earliest_deadline_, task->deadline());
  const Place place(-int64_t{task->priority()}, task->deadline(), task->arrival(), pushed_++);
  waiting_.emplace(place, std::move(task));
  return absl::OkStatus();
}

BatchQueue::Polled BatchQueue::Poll(absl::Time now) {
  Polled polled;
  DropDead(now, &polled.dropped);
  if (ready_at() <= now) polled.batch = TakeBatch();
  return polled;
}

std::vector<std::unique_ptr<BatchTask>> BatchQueue::TakeAll() {
  std::vector<std::unique_ptr<BatchTask>> all;
  for (auto& [place, task] : waiting_) all.push_back(std::move(task));
  waiting_.clear();
  queued_ = 0;
  FindUrgency();
  return all;
}

absl::Time BatchQueue::ready_at() const {
  if (waiting_.empty()) return absl::InfiniteFuture();
  // Below max_batch_size all that waits fits into one batch, so what is true of the queue is true of the
  // batch.
  if (closed_ || queued_ >= options_.max_batch_size) return absl::InfinitePast();
  const absl::Time due = oldest_arrival_ + options_.max_queue_delay;
  return earliest_deadline_ <= due ? absl::InfinitePast() : due;
}

absl::Status BatchQueue::CheckWaiting(const BatchTask& task, absl::Time now) const {
  if (absl::Status alive = CheckAlive(task, now); !alive.ok()) return alive;
  const absl::Duration waited = now - task.arrival();
  if (waited < options_.queue_timeout) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the request has waited ", absl::FormatDuration(waited),
                                                  " for an instance; the model's queue_timeout is ",
                                                  absl::FormatDuration(options_.queue_timeout)));
}

void BatchQueue::DropDead(absl::Time now, std::vector<Dropped>* dropped) {
  const size_t before = dropped->size();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    absl::Status alive = CheckWaiting(*it->second, now);
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

std::vector<std::unique_ptr<BatchTask>> BatchQueue::TakeBatch() {
  std::vector<std::unique_ptr<BatchTask>> batch;
  int64_t room = options_.max_batch_size;
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

void BatchQueue::FindUrgency() {
  oldest_arrival_ = absl::InfiniteFuture();
  earliest_deadline_ = absl::InfiniteFuture();
  for (const auto& [place, task] : waiting_) {
    oldest_arrival_ = std::min(oldest_arrival_, task->arrival());
    earliest_deadline_ = std::min(earliest_deadline_, task->deadline());
  }
}

}  // namespace saccade::server
