#include "server/simulation/eager_policy.h"

#include <algorithm>
#include <utility>

namespace saccade::server::simulation {

absl::Status EagerPolicy::Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) {
  absl::Status alive = CheckAlive(task->traits(), now);
  if (!alive.ok()) return alive;
  const absl::Time deadline = task->deadline();
  models_[model][task->bucket()].emplace(deadline, std::move(task));
  return absl::OkStatus();
}

std::optional<Policy::Batch> EagerPolicy::Next(absl::Time now) {
  for (size_t model = 0; model < models_.size(); ++model) {
    Buckets& buckets = models_[model];
    while (!buckets.empty() && idle_.any(static_cast<int>(model))) {
      const auto bucket = std::min_element(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
        return a.second.begin()->first < b.second.begin()->first;
      });
      Queue& queue = bucket->second;
      Batch batch;
      int64_t pictures = 0;
      while (!queue.empty() && pictures + queue.begin()->second->size() <= max_batch_size_) {
        std::unique_ptr<BatchTask> task = std::move(queue.begin()->second);
        queue.erase(queue.begin());
        absl::Status alive = CheckAlive(task->traits(), now);
        if (alive.ok()) {
          pictures += task->size();
          batch.tasks.push_back(std::move(task));
        } else {
          task->Reject(std::move(alive));
        }
      }
      if (queue.empty()) buckets.erase(bucket);
      if (batch.tasks.empty()) continue;
      batch.model = static_cast<int>(model);
      batch.instance = idle_.Take(batch.model);
      return batch;
    }
  }
  return std::nullopt;
}

void EagerPolicy::Finished(int model, int instance, absl::Time /*now*/, bool /*learn*/) {
  idle_.Return(model, instance);
}

}  // namespace saccade::server::simulation
