#include "server/batching/device.h"

#include <algorithm>

namespace saccade::server {
namespace {

// Approximate cost of waking two threads and moving their data to other cores. If a pass takes less than this
// per member, handing it to another thread costs more than it saves.
constexpr absl::Duration kTiny = absl::Microseconds(120);
// Upper bound of the expected pass time, because the pass blocks the thread that runs it.
constexpr absl::Duration kTinyAtMost = absl::Milliseconds(1);

bool IsTiny(const Scheduler::Batch& batch) {
  const auto members = static_cast<int64_t>(batch.tasks.size());
  return batch.expected > absl::ZeroDuration() && batch.expected < std::min(members * kTiny, kTinyAtMost);
}

void RejectAll(std::vector<Scheduler::Dropped> dropped) {
  for (auto& [task, why] : dropped) task->Reject(std::move(why));
}

}  // namespace

void Device::Sweep() {
  Dropped dropped;
  {
    absl::MutexLock lock(&mutex_);
    scheduler_.Sweep(clock_->Now(), &dropped);
  }
  RejectAll(std::move(dropped));
}

Scheduler::ModelId Device::AddModel(const BatcherOptions& options, const Places& places) {
  absl::MutexLock lock(&mutex_);
  return scheduler_.AddModel(options, places);
}

void Device::RemoveModel(Scheduler::ModelId model) {
  Tasks left;
  {
    absl::MutexLock lock(&mutex_);
    left = scheduler_.RemoveModel(model);
    // Batches that were assigned to an instance whose thread never fetched them.
    auto it = handed_out_.lower_bound({model, 0});
    while (it != handed_out_.end() && it->first.first == model) {
      for (auto& task : it->second) left.push_back(std::move(task));
      it = handed_out_.erase(it);
    }
  }
  for (auto& task : left)
    task->Reject(absl::UnavailableError("the model was unloaded before the request could run"));
}

void Device::Learn(Scheduler::ModelId model, int64_t bucket, int64_t size, absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Learn(model, bucket, size, took);
}

absl::Status Device::Submit(Scheduler::ModelId model, std::unique_ptr<BatchTask>& task,
                            std::optional<TinyBatch>* tiny) {
  Dropped dropped;
  absl::Status taken;
  {
    absl::MutexLock lock(&mutex_);
    taken = scheduler_.Push(model, task, clock_->Now(), &dropped);
    HandOut(&dropped, model, tiny);
  }
  RejectAll(std::move(dropped));
  return taken;
}

absl::Status Device::Consider(Scheduler::ModelId model, const BatchTask::Traits& traits,
                              absl::Span<const int64_t> buckets) {
  Dropped dropped;
  absl::Status said;
  {
    absl::MutexLock lock(&mutex_);
    said = scheduler_.Consider(model, traits, buckets, clock_->Now(), &dropped);
  }
  RejectAll(std::move(dropped));
  return said;
}

Device::Tasks Device::Take(Scheduler::ModelId model, int instance) {
  for (;;) {
    Dropped dropped;
    Tasks batch;
    bool drained = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto mine = [&] {
        mutex_.AssertHeld();
        return handed_out_.find({model, instance});
      };
      const absl::Time wake_at = scheduler_.wake_at();
      // Must not call `clock_`, which evaluates this condition.
      const auto changed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return mine() != handed_out_.end() || scheduler_.wake_at() != wake_at ||
               (scheduler_.closed(model) && scheduler_.queued(model) == 0);
      };
      clock_->AwaitUntil(&mutex_, absl::Condition(&changed), wake_at);
      if (mine() == handed_out_.end()) HandOut(&dropped);
      if (const auto found = mine(); found != handed_out_.end()) {
        batch = std::move(found->second);
        handed_out_.erase(found);
      } else {
        drained = scheduler_.closed(model) && scheduler_.queued(model) == 0;
      }
    }
    RejectAll(std::move(dropped));
    if (!batch.empty() || drained) return batch;
  }
}

void Device::Finished(Scheduler::ModelId model, int instance, bool learn, std::optional<TinyBatch>* tiny) {
  Dropped dropped;
  {
    absl::MutexLock lock(&mutex_);
    scheduler_.Finished(model, instance, clock_->Now(), learn);
    HandOut(&dropped, model, tiny);
  }
  RejectAll(std::move(dropped));
}

void Device::NoRoomFor(Scheduler::ModelId model, int64_t bucket, int64_t size) {
  absl::MutexLock lock(&mutex_);
  scheduler_.NoRoomFor(model, bucket, size, clock_->Now());
}

void Device::Close(Scheduler::ModelId model) {
  Dropped dropped;
  {
    absl::MutexLock lock(&mutex_);
    scheduler_.Close(model);
    HandOut(&dropped);
  }
  RejectAll(std::move(dropped));
}

int64_t Device::queued(Scheduler::ModelId model) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.queued(model);
}

void Device::HandOut(Dropped* dropped, Scheduler::ModelId model, std::optional<TinyBatch>* tiny) {
  while (auto batch = scheduler_.Next(clock_->Now(), dropped)) {
    const bool here = tiny != nullptr && !*tiny && batch->model == model && IsTiny(*batch);
    if (here) {
      tiny->emplace(TinyBatch{batch->instance, std::move(batch->tasks)});
    } else {
      handed_out_[{batch->model, batch->instance}] = std::move(batch->tasks);
    }
  }
}

}  // namespace saccade::server
