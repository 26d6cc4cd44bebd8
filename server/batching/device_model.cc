#include "server/batching/device_model.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace saccade::server {

ModelHandle::ModelHandle(DeviceGroup* group, const BatcherOptions& options, const Devices& devices)
    : group_(group),
      model_([&] {
        DeviceGroup::Instances instances(devices.size());
        for (auto& instance : instances) instance = std::make_unique<DeviceGroup::Instance>();
        absl::MutexLock lock(&group->mutex_);
        // So that Close() needs no memory.
        group->closing_.reserve(group->instances_.size() + 1);
        const Scheduler::ModelId model = group->scheduler_.AddModel(options, devices);
        group->instances_.emplace(model, std::move(instances));
        return model;
      }()),
      gauges_([&] {
        absl::MutexLock lock(&group->mutex_);
        return group->scheduler_.gauges(model_);
      }()) {}

ModelHandle::~ModelHandle() {
  Tasks left;
  {
    absl::MutexLock lock(&group_->mutex_);
    left = group_->scheduler_.RemoveModel(model_);
    const auto instances = group_->instances_.find(model_);
    // Batches whose instances' threads never fetched them.
    for (const auto& instance : instances->second) {
      for (auto& task : instance->batch) left.push_back(std::move(task));
    }
    group_->instances_.erase(instances);
    auto& closing = group_->closing_;
    closing.erase(std::remove(closing.begin(), closing.end(), model_), closing.end());
  }
  for (auto& task : left) {
    try {
      task->Reject(absl::UnavailableError("the model was unloaded before the request could run"));
    } catch (const std::exception& error) {
      group_->Tell(error.what());
    }
  }
}

void ModelHandle::Learn(int64_t bucket, int64_t size, absl::Duration took) {
  absl::MutexLock lock(&group_->mutex_);
  group_->scheduler_.Learn(model_, bucket, size, took);
}

std::vector<LearnedTiming> ModelHandle::Learned() const {
  absl::MutexLock lock(&group_->mutex_);
  return group_->scheduler_.Learned(model_);
}

absl::Status ModelHandle::Submit(std::unique_ptr<BatchTask>& task,
                                 std::optional<TinyBatch<BatchTask>>* tiny) {
  DeviceGroup::RejectedAtEnd dropped(group_);
  absl::MutexLock lock(&group_->mutex_);
  absl::Status taken = group_->scheduler_.Push(model_, task, group_->clock_->Now(), &dropped.tasks);
  group_->HandOutSafely(&dropped.tasks, model_, tiny);
  return taken;
}

absl::Status ModelHandle::Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) {
  DeviceGroup::RejectedAtEnd dropped(group_);
  absl::MutexLock lock(&group_->mutex_);
  absl::Status said =
      group_->scheduler_.Consider(model_, traits, buckets, group_->clock_->Now(), &dropped.tasks);
  group_->EndDrained();
  return said;
}

ModelHandle::Tasks ModelHandle::Take(int instance) {
  for (;;) {
    Signal* signal = nullptr;
    if (std::optional<Tasks> batch = TryTake(instance, &signal)) return *std::move(batch);
    signal->AwaitUntil(group_->clock_, absl::InfiniteFuture());
  }
}

std::optional<ModelHandle::Tasks> ModelHandle::TryTake(int instance) {
  Signal* signal = nullptr;
  return TryTake(instance, &signal);
}

std::optional<ModelHandle::Tasks> ModelHandle::TryTake(int instance, Signal** signal) {
  absl::MutexLock lock(&group_->mutex_);
  DeviceGroup::Instance& mine = *group_->instances_.at(model_)[static_cast<size_t>(instance)];
  *signal = &mine.signal;
  Tasks batch = std::exchange(mine.batch, {});
  if (batch.empty() && !group_->IsDrained(model_)) return std::nullopt;
  return batch;
}

template <typename End>
ModelHandle::Changes ModelHandle::EndPass(std::optional<TinyBatch<BatchTask>>* tiny, const End& end) {
  DeviceGroup::Dropped dropped;
  Changes changes;
  {
    absl::MutexLock lock(&group_->mutex_);
    end(group_->scheduler_, group_->clock_->Now());
    // Needs no memory, so that nothing is between the end of the pass and the next batches.
    changes = group_->scheduler_.TakeChanges(model_);
    group_->HandOutSafely(&dropped, model_, tiny);
  }
  group_->RejectAll(std::move(dropped));
  return changes;
}

ModelHandle::Changes ModelHandle::Finished(int instance, bool learn,
                                           std::optional<TinyBatch<BatchTask>>* tiny) {
  return EndPass(
      tiny, [&](Scheduler& scheduler, absl::Time now) { scheduler.Finished(model_, instance, now, learn); });
}

ModelHandle::Changes ModelHandle::Failed(int instance, Tasks* tasks,
                                         std::optional<TinyBatch<BatchTask>>* tiny, bool lost) {
  return EndPass(tiny, [&](Scheduler& scheduler, absl::Time now) {
    scheduler.Failed(model_, instance, now, tasks, lost);
  });
}

void ModelHandle::Skipped(int instance, std::optional<TinyBatch<BatchTask>>* tiny) {
  EndPass(tiny, [&](Scheduler& scheduler, absl::Time now) { scheduler.Skipped(model_, instance, now); });
}

void ModelHandle::ReduceBatches(int64_t bucket, int64_t size) {
  absl::MutexLock lock(&group_->mutex_);
  group_->scheduler_.ReduceBatches(model_, bucket, size, group_->clock_->Now());
}

void ModelHandle::Close() {
  DeviceGroup::Dropped dropped;
  {
    absl::MutexLock lock(&group_->mutex_);
    if (!group_->scheduler_.closed(model_)) group_->closing_.push_back(model_);
    group_->scheduler_.Close(model_);
    group_->HandOutSafely(&dropped);
  }
  group_->RejectAll(std::move(dropped));
}

}  // namespace saccade::server
