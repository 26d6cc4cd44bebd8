#include "server/batching/device_model.h"

namespace saccade::server {

ModelHandle::ModelHandle(DeviceGroup* group, const BatcherOptions& options, const Devices& devices)
    : group_(group), model_([&] {
        absl::MutexLock lock(&group->mutex_);
        return group->scheduler_.AddModel(options, devices);
      }()) {}

ModelHandle::~ModelHandle() {
  Tasks left;
  {
    absl::MutexLock lock(&group_->mutex_);
    left = group_->scheduler_.RemoveModel(model_);
    // Batches that were assigned to an instance whose thread never fetched them.
    auto& handed_out = group_->handed_out_;
    auto it = handed_out.lower_bound({model_, 0});
    while (it != handed_out.end() && it->first.first == model_) {
      for (auto& task : it->second) left.push_back(std::move(task));
      it = handed_out.erase(it);
    }
  }
  for (auto& task : left)
    task->Reject(absl::UnavailableError("the model was unloaded before the request could run"));
}

void ModelHandle::Learn(int64_t bucket, int64_t size, absl::Duration took) {
  absl::MutexLock lock(&group_->mutex_);
  group_->scheduler_.Learn(model_, bucket, size, took);
}

absl::Status ModelHandle::Submit(std::unique_ptr<BatchTask>& task,
                                 std::optional<TinyBatch<BatchTask>>* tiny) {
  DeviceGroup::Dropped dropped;
  absl::Status taken;
  {
    absl::MutexLock lock(&group_->mutex_);
    taken = group_->scheduler_.Push(model_, task, group_->clock_->Now(), &dropped);
    group_->HandOut(&dropped, model_, tiny);
  }
  DeviceGroup::RejectAll(std::move(dropped));
  return taken;
}

absl::Status ModelHandle::Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) {
  DeviceGroup::Dropped dropped;
  absl::Status said;
  {
    absl::MutexLock lock(&group_->mutex_);
    said = group_->scheduler_.Consider(model_, traits, buckets, group_->clock_->Now(), &dropped);
  }
  DeviceGroup::RejectAll(std::move(dropped));
  return said;
}

ModelHandle::Tasks ModelHandle::Take(int instance) {
  for (;;) {
    DeviceGroup::Dropped dropped;
    Tasks batch;
    bool drained = false;
    {
      absl::MutexLock lock(&group_->mutex_);
      drained = group_->AwaitBatch(model_, instance, &batch, &dropped);
    }
    DeviceGroup::RejectAll(std::move(dropped));
    if (!batch.empty() || drained) return batch;
  }
}

void ModelHandle::Finished(int instance, bool learn, std::optional<TinyBatch<BatchTask>>* tiny) {
  DeviceGroup::Dropped dropped;
  {
    absl::MutexLock lock(&group_->mutex_);
    group_->scheduler_.Finished(model_, instance, group_->clock_->Now(), learn);
    group_->HandOut(&dropped, model_, tiny);
  }
  DeviceGroup::RejectAll(std::move(dropped));
}

void ModelHandle::ReduceBatches(int64_t bucket, int64_t size) {
  absl::MutexLock lock(&group_->mutex_);
  group_->scheduler_.ReduceBatches(model_, bucket, size, group_->clock_->Now());
}

void ModelHandle::Close() {
  DeviceGroup::Dropped dropped;
  {
    absl::MutexLock lock(&group_->mutex_);
    group_->scheduler_.Close(model_);
    group_->HandOut(&dropped);
  }
  DeviceGroup::RejectAll(std::move(dropped));
}

int64_t ModelHandle::queued() const {
  absl::MutexLock lock(&group_->mutex_);
  return group_->scheduler_.queued(model_);
}

}  // namespace saccade::server
