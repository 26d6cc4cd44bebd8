#include "server/simulation/triton_policy.h"

#include <algorithm>
#include <utility>

namespace saccade::server::simulation {

absl::Status TritonPolicy::Push(int model, std::unique_ptr<BatchTask>& task, absl::Time /*now*/) {
  queues_[model].push_back(std::move(task));
  return absl::OkStatus();
}

TritonPolicy::Due TritonPolicy::DueOf(const std::deque<std::unique_ptr<BatchTask>>& queue) const {
  const auto& preferred = options_.preferred_batch_sizes;
  Due due;
  int64_t pictures = 0;
  size_t preferred_tasks = 0;
  bool cut = false;
  for (const auto& task : queue) {
    cut = task->bucket() != queue.front()->bucket() || pictures + task->size() > options_.max_batch_size;
    if (cut) break;
    pictures += task->size();
    ++due.tasks;
    if (std::binary_search(preferred.begin(), preferred.end(), pictures)) preferred_tasks = due.tasks;
  }
  if (preferred_tasks > 0) {
    due.tasks = preferred_tasks;
  } else if (!cut && pictures < options_.max_batch_size) {
    due.at = queue.front()->arrival() + options_.max_queue_delay;
    return due;
  }
  due.at = absl::InfinitePast();
  return due;
}

std::optional<Policy::Batch> TritonPolicy::Next(absl::Time now) {
  for (size_t model = 0; model < queues_.size(); ++model) {
    auto& queue = queues_[model];
    if (queue.empty() || !idle_.any(static_cast<int>(model))) continue;
    const Due due = DueOf(queue);
    if (due.at > now) continue;
    Batch batch;
    batch.model = static_cast<int>(model);
    batch.instance = idle_.Take(batch.model);
    const auto end = queue.begin() + static_cast<std::ptrdiff_t>(due.tasks);
    batch.tasks.assign(std::make_move_iterator(queue.begin()), std::make_move_iterator(end));
    queue.erase(queue.begin(), end);
    return batch;
  }
  return std::nullopt;
}

void TritonPolicy::Finished(int model, int instance, absl::Time /*now*/, bool /*learn*/) {
  idle_.Return(model, instance);
}

absl::Time TritonPolicy::wake_at() const {
  absl::Time wake = absl::InfiniteFuture();
  for (size_t model = 0; model < queues_.size(); ++model) {
    if (queues_[model].empty() || !idle_.any(static_cast<int>(model))) continue;
    wake = std::min(wake, DueOf(queues_[model]).at);
  }
  return wake;
}

}  // namespace saccade::server::simulation
