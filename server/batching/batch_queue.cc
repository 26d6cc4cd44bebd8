#include "server/batching/batch_queue.h"

#include <algorithm>
#include <iterator>
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
  if (absl::Status alive = CheckWaiting(*task, options_, now); !alive.ok()) return alive;
  if (queued_ + size > options_.max_queue_size) DropDead(now, dropped);
  if (queued_ + size > options_.max_queue_size) {
    return absl::ResourceExhaustedError(absl::StrCat("the model's queue is full: ", queued_, " of ",
                                                     options_.max_queue_size,
                                                     " pictures (max_queue_size) wait; try again later"));
  }
  queued_ += size;
  const BucketQueue::Place place(-int64_t{task->priority()}, task->deadline(), task->arrival(), pushed_++);
  BucketQueue& bucket = buckets_.try_emplace(task->bucket(), &options_).first->second;
  bucket.Push(place, std::move(task));
  ready_at_ = std::min(ready_at_, bucket.ready_at());
  return absl::OkStatus();
}

BatchQueue::Polled BatchQueue::Poll(absl::Time now) {
  Polled polled;
  DropDead(now, &polled.dropped);
  if (ready_at() <= now) polled.batch = TakeBatch(now);
  return polled;
}

std::vector<std::unique_ptr<BatchTask>> BatchQueue::TakeAll() {
  std::vector<std::unique_ptr<BatchTask>> all;
  for (auto& [id, bucket] : buckets_) {
    std::vector<std::unique_ptr<BatchTask>> tasks = bucket.TakeAll();
    std::move(tasks.begin(), tasks.end(), std::back_inserter(all));
  }
  buckets_.clear();
  queued_ = 0;
  FindReady();
  return all;
}

void BatchQueue::DropDead(absl::Time now, std::vector<Dropped>* dropped) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    BucketQueue& bucket = it->second;
    queued_ -= bucket.queued();
    bucket.DropDead(now, dropped);
    queued_ += bucket.queued();
    it = bucket.empty() ? buckets_.erase(it) : std::next(it);
  }
  FindReady();
}

std::vector<std::unique_ptr<BatchTask>> BatchQueue::TakeBatch(absl::Time now) {
  auto best = buckets_.end();
  for (auto it = buckets_.begin(); it != buckets_.end(); ++it) {
    if (!closed_ && it->second.ready_at() > now) continue;
    if (best == buckets_.end() || it->second.first() < best->second.first()) best = it;
  }
  BucketQueue& bucket = best->second;
  queued_ -= bucket.queued();
  std::vector<std::unique_ptr<BatchTask>> batch = bucket.TakeBatch();
  queued_ += bucket.queued();
  if (bucket.empty()) buckets_.erase(best);
  FindReady();
  return batch;
}

void BatchQueue::FindReady() {
  ready_at_ = absl::InfiniteFuture();
  for (const auto& [id, bucket] : buckets_) ready_at_ = std::min(ready_at_, bucket.ready_at());
}

}  // namespace saccade::server
