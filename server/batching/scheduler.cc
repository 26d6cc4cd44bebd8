#include "server/batching/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/batching/scheduler_impl.h"

namespace saccade::server {
namespace {

absl::Status Closed() {
  return absl::UnavailableError(
      "the model accepts no more requests: it is being unloaded or the server is shutting down; try another "
      "replica");
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Scheduler::~Scheduler() = default;

Scheduler::ModelId Scheduler::AddModel(const BatcherOptions& options, const Devices& devices) {
  auto& models = impl_->models;
  const auto free = std::find(models.begin(), models.end(), nullptr);
  const auto id = static_cast<ModelId>(free - models.begin());
  if (free == models.end()) models.emplace_back();
  // Each of these lists has a model once at most, so that none of them grows later.
  impl_->changed.reserve(models.size());
  impl_->retrying.reserve(models.size());
  for (const int device : devices) impl_->devices[device].offers.reserve(models.size());
  models[id] = std::make_unique<Impl::Model>(id, options);
  Impl::Model& model = *models[id];
  model.idle = devices.size();
  model.instances.resize(devices.size());
  // Reversed, because Start() takes idle instances from the back: instance 0 computes first.
  for (size_t i = devices.size(); i-- > 0;) {
    Impl::Device* const device = &impl_->devices[devices[i]];
    auto on_device = std::find_if(model.devices.begin(), model.devices.end(),
                                  [&](const auto& known) { return known->device == device; });
    if (on_device == model.devices.end()) {
      on_device =
          model.devices.insert(on_device, std::make_unique<Impl::ModelOnDevice>(Impl::ModelOnDevice{
                                              .model = &model, .device = device, .used = device->served}));
    }
    ++(*on_device)->instances;
    (*on_device)->idle.push_back(static_cast<int>(i));
    model.instances[i].on_device = on_device->get();
    Impl::Listed listed;
    listed.insert({NanoTime(), nullptr});
    model.instances[i].node = listed.extract(listed.begin());
  }
  return id;
}

std::vector<std::unique_ptr<BatchTask>> Scheduler::RemoveModel(ModelId id) {
  Impl::Model& model = *impl_->models.at(id);
  std::vector<std::unique_ptr<BatchTask>> left = model.queue.TakeAll();
  // Instances whose batch was handed out but never fetched.
  for (Impl::Instance& instance : model.instances) impl_->ReleaseCores(instance);
  impl_->ForgetFailures(model, &left);
  model.idle = model.instances.size();
  model.paused = 0;
  impl_->Remove(model);
  return left;
}

void Scheduler::Close(ModelId id) {
  Impl::Model& model = *impl_->models.at(id);
  model.closed = true;
  impl_->Track(model);
}

void Scheduler::Learn(ModelId id, int64_t bucket, int64_t size, absl::Duration took) {
  Impl::Model& model = *impl_->models.at(id);
  model.queue.Learn(bucket, size, Nanos(took), NanoTime());
  impl_->Track(model);
}

std::vector<LearnedTiming> Scheduler::Learned(ModelId model) const {
  return impl_->models.at(model)->queue.Learned();
}

absl::Status Scheduler::Push(ModelId id, std::unique_ptr<BatchTask>& task, absl::Time now,
                             std::vector<Dropped>* dropped) {
  Impl::Model& model = *impl_->models.at(id);
  if (model.closed) return Closed();
  const NanoTime time(now);
  // Idle models do not accumulate credit: limit it to kMaxCreditPasses behind the device's current level.
  if (model.queue.empty()) {
    for (const auto& on_device : model.devices) {
      const Impl::Device& device = *on_device->device;
      const Nanos least = device.served - Impl::kMaxCreditPasses * device.longest / model.weight();
      if (on_device->used < least) Impl::Use(*on_device, least);
    }
  }
  // Push() may drop tasks of a full queue, and throw afterwards.
  const absl::Cleanup track = [&] { impl_->Track(model); };
  absl::Status taken =
      model.queue.Push(task, time, Impl::ExpectedWait(model, time), impl_->UsableInstances(model), dropped);
  impl_->CountDemand(model);
  return taken;
}

absl::Status Scheduler::Consider(ModelId id, const BatchTask::Traits& traits,
                                 absl::Span<const int64_t> buckets, absl::Time now,
                                 std::vector<Dropped>* dropped) {
  Impl::Model& model = *impl_->models.at(id);
  if (model.closed) return Closed();
  const NanoTime time(now);
  // Consider() may drop tasks of a full queue, and throw afterwards.
  const absl::Cleanup track = [&] { impl_->Track(model); };
  absl::Status said = model.queue.Consider(traits, buckets, time, Impl::ExpectedWait(model, time),
                                           impl_->UsableInstances(model), dropped);
  impl_->CountDemand(model);
  return said;
}

std::optional<Scheduler::Batch> Scheduler::Next(absl::Time now, std::vector<Dropped>* dropped) {
  const NanoTime time(now);
  impl_->EndPauses(time);
  if (auto retry = impl_->NextRetry(time, dropped)) return retry;
  while (Impl::ModelOnDevice* const chosen = impl_->Choose(time, dropped)) {
    Impl::Model& model = *chosen->model;
    Bucket& bucket = *model.due_estimate.due.bucket;
    // Take() may remove tasks, and throw afterwards. If it finds none, all were cancelled in the meantime.
    absl::Cleanup track = [&] { impl_->Track(model); };
    ModelQueue::Tasks tasks = model.queue.Take(bucket, time, dropped);
    if (!tasks.empty()) {
      // Start() does that.
      std::move(track).Cancel();
      int64_t size = 0;
      for (const auto& task : tasks) size += task->size();
      return impl_->Start(*chosen, chosen->idle.end() - 1, bucket.id, bucket.latency.Mean(size),
                          std::move(tasks), time);
    }
  }
  return std::nullopt;
}

void Scheduler::Sweep(absl::Time now, std::vector<Dropped>* dropped) {
  for (const auto& model : impl_->models) {
    if (model == nullptr || (model->queue.empty() && model->retries.empty())) continue;
    const absl::Cleanup track = [&] { impl_->Track(*model); };
    model->queue.SweepAll(NanoTime(now), dropped);
    impl_->SweepRetries(*model, NanoTime(now), dropped);
  }
}

void Scheduler::Finished(ModelId id, int index, absl::Time now, bool learn) {
  Impl::Model& model = *impl_->models.at(id);
  Impl::Instance& instance = model.instances.at(index);
  const NanoTime time(now);
  impl_->CountSuccess(model, instance, time);
  impl_->EndPass(model, instance, learn ? std::optional(time - instance.started) : std::nullopt, time);
  impl_->MakeIdle(model, instance);
  impl_->Track(model);
}

bool Scheduler::Failed(ModelId id, int index, absl::Time now, std::vector<std::unique_ptr<BatchTask>>* tasks,
                       bool lost) {
  Impl::Model& model = *impl_->models.at(id);
  const bool retried = impl_->Fail(model, model.instances.at(index), tasks, lost, NanoTime(now));
  impl_->Track(model);
  return retried;
}

void Scheduler::Skipped(ModelId id, int index, absl::Time now) {
  Impl::Model& model = *impl_->models.at(id);
  Impl::Instance& instance = model.instances.at(index);
  impl_->EndPass(model, instance, std::nullopt, NanoTime(now));
  impl_->MakeIdle(model, instance);
  impl_->Track(model);
}

Scheduler::Changes Scheduler::TakeChanges(ModelId model) {
  Changes& changes = impl_->models.at(model)->changes;
  Changes taken(changes.begin(), changes.end());
  changes.clear();
  return taken;
}

int64_t Scheduler::set_aside(ModelId model) const {
  return static_cast<int64_t>(impl_->models.at(model)->aside);
}

void Scheduler::ReduceBatches(ModelId id, int64_t bucket, int64_t size, absl::Time now) {
  Impl::Model& model = *impl_->models.at(id);
  model.queue.ReduceBatches(bucket, size, NanoTime(now));
  impl_->Track(model);
}

absl::Duration Scheduler::TakeDemand(ModelId model) { return gauges(model)->demand.Take(); }
absl::Duration Scheduler::TakeDemand() { return impl_->demand.Take(); }

ModelGauges* Scheduler::gauges(ModelId model) const { return &impl_->models.at(model)->gauges; }
Demand* Scheduler::demand() const { return &impl_->demand; }

absl::Time Scheduler::wake_at() const { return impl_->next_wake.ToTime(); }

int64_t Scheduler::queued(ModelId id) const { return impl_->models.at(id)->queued(); }
bool Scheduler::closed(ModelId model) const { return impl_->models.at(model)->closed; }

}  // namespace saccade::server
