#include "server/simulation/scheduler_policy.h"

#include <utility>

namespace saccade::server::simulation {

SchedulerPolicy::SchedulerPolicy(const SchedulerOptions& options, const std::vector<BatcherOptions>& batchers,
                                 const std::vector<ModelOptions>& models)
    : batchers_(batchers), models_(models), scheduler_(options), ids_(models.size()) {
  for (size_t model = 0; model < models.size(); ++model) Load(static_cast<int>(model));
}

void SchedulerPolicy::Load(int model) {
  const ModelOptions& options = models_[model];
  const Devices devices = options.devices.empty() ? Devices(options.instances) : options.devices;
  const Scheduler::ModelId id = scheduler_.AddModel(batchers_[model], devices);
  ids_[model] = id;
  if (static_cast<size_t>(id) >= by_id_.size()) by_id_.resize(id + 1);
  by_id_[id] = model;
  for (size_t bucket = 0; bucket < options.shapes.size(); ++bucket) {
    const auto number = static_cast<int64_t>(bucket);
    std::vector<int64_t> sizes = {1, batchers_[model].max_batch_size};
    // The largest in front, so that the others are known to lie between two sizes.
    for (int64_t size = 2; !options.measured.empty() && size < batchers_[model].max_batch_size; ++size)
      sizes.push_back(size);
    for (const int64_t size : sizes) {
      scheduler_.Learn(id, number, size, ToDuration(options.Latency(number, size)));
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
  return Batch{.model = by_id_[batch->model], .instance = batch->instance, .tasks = std::move(batch->tasks)};
}

void SchedulerPolicy::Finished(int model, int instance, absl::Time now, bool learn) {
  scheduler_.Finished(ids_[model], instance, now, learn);
}

void SchedulerPolicy::RejectDropped() {
  for (Scheduler::Dropped& dropped : dropped_) dropped.task->Reject(std::move(dropped.why));
  dropped_.clear();
}

}  // namespace saccade::server::simulation
