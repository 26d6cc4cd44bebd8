#include "server/simulation/scheduler_policy.h"

#include <utility>

namespace saccade::server::simulation {

SchedulerPolicy::SchedulerPolicy(const SchedulerOptions& options, const std::vector<BatcherOptions>& batchers,
                                 const std::vector<ModelOptions>& models)
    : scheduler_(options) {
  for (size_t model = 0; model < models.size(); ++model) {
    const Scheduler::ModelId id = scheduler_.AddModel(batchers[model], models[model].instances);
    ids_.push_back(id);
    if (static_cast<size_t>(id) >= models_.size()) models_.resize(id + 1);
    models_[id] = static_cast<int>(model);
    for (size_t bucket = 0; bucket < models[model].shapes.size(); ++bucket) {
      for (const int64_t size : {int64_t{1}, batchers[model].max_batch_size}) {
        const Instant took = models[model].Latency(static_cast<int64_t>(bucket), size);
        scheduler_.Learn(id, static_cast<int64_t>(bucket), size, absl::Nanoseconds(took));
      }
    }
  }
}

absl::Status SchedulerPolicy::Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) {
  absl::Status taken = scheduler_.Push(ids_[model], task, now, &dropped_);
  RejectDropped();
  return taken;
}

std::optional<Policy::Batch> SchedulerPolicy::Next(absl::Time now) {
  std::optional<Scheduler::Batch> batch = scheduler_.Next(now, &dropped_);
  RejectDropped();
  if (!batch) return std::nullopt;
  return Batch{.model = models_[batch->model], .instance = batch->instance, .tasks = std::move(batch->tasks)};
}

void SchedulerPolicy::Finished(int model, int instance, absl::Time now, bool learn) {
  scheduler_.Finished(ids_[model], instance, now, learn);
}

void SchedulerPolicy::RejectDropped() {
  for (Scheduler::Dropped& dropped : dropped_) dropped.task->Reject(std::move(dropped.why));
  dropped_.clear();
}

}  // namespace saccade::server::simulation
