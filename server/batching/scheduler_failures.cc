// How a Scheduler treats passes that fail: retries, and instances that are set aside.
#include <algorithm>
#include <list>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/batching/scheduler_impl.h"

namespace saccade::server {
namespace {

// Whether a task can still be computed in a pass that takes `expected`.
absl::Status CheckInTime(const BatchTask& task, Nanos expected, NanoTime now) {
  // Deadlines were truncated to nanoseconds, so check a nanosecond later.
  absl::Status alive = CheckAlive(task.traits(), (now + Nanos(1)).ToTime());
  if (!alive.ok()) return alive;
  if (now + expected <= NanoTime(task.deadline())) return absl::OkStatus();
  return absl::DeadlineExceededError(
      "a forward pass failed, and the time left before the deadline does not suffice for another; use a "
      "later "
      "deadline");
}

int64_t SizeOf(const ModelQueue::Tasks& tasks) {
  int64_t size = 0;
  for (const auto& task : tasks) size += task->size();
  return size;
}

}  // namespace

void Scheduler::Impl::EndPass(Model& model, Instance& instance, std::optional<Nanos> took, NanoTime now) {
  ModelOnDevice& on_device = *instance.on_device;
  model.queue.Learn(instance.bucket, instance.size, took, now);
  model.queue.CountComputed(instance.bucket, instance.size, now);
  const Nanos used = now - instance.started;
  Use(on_device, on_device.used + (used - instance.charged) * model.threads() / model.weight());
  ReleaseCores(instance);
}

void Scheduler::Impl::MakeIdle(Model& model, Instance& instance) {
  model.ends -= instance.started.SinceEpoch() + instance.charged;
  instance.on_device->idle.push_back(static_cast<int>(&instance - model.instances.data()));
  if (++model.idle + model.paused == model.instances.size()) model.ends = Nanos();
}

void Scheduler::Impl::Pause(Instance& instance, NanoTime until) {
  instance.paused_until = until;
  List(pauses, until, instance);
}

void Scheduler::Impl::SetAside(Model& model, Instance& instance) {
  instance.health.SetAside();
  ++model.aside;
  --instance.on_device->instances;
  model.changes.push_back({static_cast<int>(&instance - model.instances.data()), /*set_aside=*/true});
}

void Scheduler::Impl::CountSuccess(Model& model, Instance& instance, NanoTime now) {
  if (instance.health.Succeeded(now)) {
    --model.aside;
    ++instance.on_device->instances;
    model.changes.push_back({static_cast<int>(&instance - model.instances.data()), /*set_aside=*/false});
  }
  if (instance.retry_of < 0) return;
  // The items are sound, so the instance that failed on them is not.
  Instance& failed = model.instances[static_cast<size_t>(instance.retry_of)];
  if (!failed.health.Failed(instance.failed_at) || model.in_service() <= 1) return;
  SetAside(model, failed);
  // If it computes, its pause begins when that pass has ended.
  const auto index = instance.retry_of;
  auto& idle = failed.on_device->idle;
  const auto found = std::find(idle.begin(), idle.end(), index);
  const bool resting = failed.paused_until != NanoTime();
  if (found != idle.end()) {
    idle.erase(found);
    --model.idle;
  } else if (resting) {
    Unlist(pauses, failed.paused_until, failed);
    model.ends -= failed.started.SinceEpoch() + failed.charged;
  } else {
    return;
  }
  ++model.paused;
  Pause(failed, now + failed.health.NextPause());
}

bool Scheduler::Impl::MayRetryOn(const Model& model, const Instance& failed, const Instance& other) {
  if (&other == &failed || other.health.aside()) return false;
  if (other.on_device != failed.on_device) return true;
  return std::all_of(model.devices.begin(), model.devices.end(), [&](const auto& on_device) {
    return on_device.get() == failed.on_device || on_device->instances == 0;
  });
}

bool Scheduler::Impl::HasRetryInstance(const Model& model, const Instance& failed) {
  return std::any_of(model.instances.begin(), model.instances.end(),
                     [&](const Instance& other) { return MayRetryOn(model, failed, other); });
}

bool Scheduler::Impl::Fail(Model& model, Instance& instance, ModelQueue::Tasks* tasks, bool lost,
                           NanoTime now) {
  EndPass(model, instance, std::nullopt, now);
  // The last one in service stays: it fails at once, so that requests are answered.
  if (lost && !instance.health.aside() && model.in_service() > 1) SetAside(model, instance);
  const bool has_other = HasRetryInstance(model, instance);
  const NanoTime should_end = instance.started + instance.charged;
  if (instance.health.aside()) {
    model.ends -= instance.started.SinceEpoch() + instance.charged;
    if (++model.paused + model.idle == model.instances.size()) model.ends = Nanos();
    Pause(instance, lost ? NanoTime::Never() : now + instance.health.NextPause());
  } else if (has_other && should_end > now) {
    Pause(instance, should_end);
  } else {
    MakeIdle(model, instance);
  }
  const int64_t size = SizeOf(*tasks);
  // A batch is retried once: if it fails again, its input is bad, or no instance works.
  if (tasks->empty() || !has_other || model.closed || instance.retry_of >= 0 ||
      model.retried + size > model.queue.options().max_queue_size)
    return false;
  std::list<Retry> retry;
  try {
    retry.push_back({.tasks = {},
                     .bucket = instance.bucket,
                     .expected = instance.charged,
                     .failed_on = static_cast<int>(&instance - model.instances.data()),
                     .failed_at = instance.started});
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (model.retries.empty()) retrying.push_back(&model);
  model.retried += size;
  retry.back().tasks = std::exchange(*tasks, {});
  model.retries.splice(model.retries.end(), retry);
  return true;
}

void Scheduler::Impl::EndPauses(NanoTime now) {
  while (!pauses.empty() && pauses.begin()->first <= now) {
    Instance& instance = *pauses.begin()->second;
    Unlist(pauses, instance.paused_until, instance);
    instance.paused_until = NanoTime();
    Model& model = *instance.on_device->model;
    if (instance.health.aside()) {
      --model.paused;
      ++model.idle;
      // Last, so that it is the next to compute: the next batch is the probe.
      instance.on_device->idle.push_back(static_cast<int>(&instance - model.instances.data()));
    } else {
      MakeIdle(model, instance);
    }
    Track(model);
  }
}

void Scheduler::Impl::SweepRetries(Model& model, NanoTime now, std::vector<Dropped>* dropped) {
  if (model.retries.empty()) return;
  for (auto it = model.retries.begin(); it != model.retries.end();) {
    const bool has_other = HasRetryInstance(model, model.instances[static_cast<size_t>(it->failed_on)]);
    // The estimate may have changed since the pass that failed began: that one may have been a probe of an
    // estimate that was doubted.
    if (!it->tasks.empty())
      it->expected = model.queue.Expected(it->bucket, SizeOf(it->tasks)).value_or(it->expected);
    {
      // If an allocation fails in between, no places without a task stay behind.
      const absl::Cleanup fill_gaps = [&tasks = it->tasks] { std::erase(tasks, nullptr); };
      std::erase_if(it->tasks, [&](std::unique_ptr<BatchTask>& task) {
        absl::Status alive = CheckInTime(*task, it->expected, now);
        if (alive.ok() && !has_other)
          alive = absl::UnavailableError("no other instance of the model is in service; try again");
        if (alive.ok()) return false;
        // Room first, so that no task is lost.
        if (dropped->size() == dropped->capacity()) dropped->reserve(2 * dropped->size() + 1);
        model.retried -= task->size();
        dropped->push_back({std::move(task), std::move(alive)});
        return true;
      });
    }
    it = it->tasks.empty() ? model.retries.erase(it) : std::next(it);
  }
  if (model.retries.empty()) retrying.erase(std::find(retrying.begin(), retrying.end(), &model));
}

std::optional<Scheduler::Batch> Scheduler::Impl::NextRetry(NanoTime now, std::vector<Dropped>* dropped) {
  if (retrying.empty()) return std::nullopt;
  ReleaseCoresOfLongPasses(now);
  for (size_t i = retrying.size(); i-- > 0;) {
    Model& model = *retrying[i];
    const size_t dropped_before = dropped->size();
    SweepRetries(model, now, dropped);
    if (dropped->size() != dropped_before) Track(model);
    for (auto it = model.retries.begin(); it != model.retries.end(); ++it) {
      const Instance& failed = model.instances[static_cast<size_t>(it->failed_on)];
      for (const auto& on_device : model.devices) {
        if (!HasCores(*on_device->device, model.threads())) continue;
        const auto idle = std::find_if(on_device->idle.begin(), on_device->idle.end(), [&](int index) {
          return MayRetryOn(model, failed, model.instances[static_cast<size_t>(index)]);
        });
        if (idle == on_device->idle.end()) continue;
        Retry retry = std::move(*it);
        model.retries.erase(it);
        model.retried -= SizeOf(retry.tasks);
        if (model.retries.empty()) retrying.erase(retrying.begin() + static_cast<std::ptrdiff_t>(i));
        Batch batch = Start(*on_device, idle, retry.bucket, retry.expected, std::move(retry.tasks), now);
        Instance& instance = model.instances[static_cast<size_t>(batch.instance)];
        instance.retry_of = retry.failed_on;
        instance.failed_at = retry.failed_at;
        return batch;
      }
    }
  }
  return std::nullopt;
}

void Scheduler::Impl::ForgetFailures(Model& model, ModelQueue::Tasks* left) {
  for (Instance& instance : model.instances) {
    if (instance.paused_until != NanoTime()) Unlist(pauses, instance.paused_until, instance);
  }
  if (model.retries.empty()) return;
  for (Retry& retry : model.retries) {
    for (auto& task : retry.tasks) left->push_back(std::move(task));
  }
  model.retries.clear();
  model.retried = 0;
  retrying.erase(std::find(retrying.begin(), retrying.end(), &model));
}

}  // namespace saccade::server
