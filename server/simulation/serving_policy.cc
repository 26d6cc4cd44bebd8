#include "server/simulation/serving_policy.h"

#include <algorithm>
#include <utility>

namespace saccade::server::simulation {

absl::Status ServingPolicy::Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) {
  auto& queue = queues_[model];
  if (queue.empty() || queue.back().pictures + task->size() > options_.max_batch_size) {
    if (queue.size() >= options_.max_enqueued_batches) {
      return absl::UnavailableError("the batching queue is full");
    }
    queue.push_back({.since = now, .tasks = {}});
  }
  queue.back().pictures += task->size();
  queue.back().tasks.push_back(std::move(task));
  return absl::OkStatus();
}

absl::Time ServingPolicy::DueAt(const std::deque<Enqueued>& queue) const {
  if (queue.size() > 1 || queue.front().pictures >= options_.max_batch_size) return absl::InfinitePast();
  return queue.front().since + options_.batch_timeout;
}

std::optional<Policy::Batch> ServingPolicy::Next(absl::Time now) {
  for (size_t model = 0; model < queues_.size(); ++model) {
    auto& queue = queues_[model];
    if (queue.empty() || !idle_.any(static_cast<int>(model)) || DueAt(queue) > now) continue;
    Batch batch;
    batch.model = static_cast<int>(model);
    batch.instance = idle_.Take(batch.model);
    batch.tasks = std::move(queue.front().tasks);
    queue.pop_front();
    return batch;
  }
  return std::nullopt;
}

void ServingPolicy::Finished(int model, int instance, absl::Time /*now*/, bool /*learn*/) {
  idle_.Return(model, instance);
}

absl::Time ServingPolicy::wake_at() const {
  absl::Time wake = absl::InfiniteFuture();
  for (size_t model = 0; model < queues_.size(); ++model) {
    if (queues_[model].empty() || !idle_.any(static_cast<int>(model))) continue;
    wake = std::min(wake, DueAt(queues_[model]));
  }
  return wake;
}

}  // namespace saccade::server::simulation
