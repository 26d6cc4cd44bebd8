#include "server/batching/device_group.h"

#include <algorithm>

namespace saccade::server {
namespace {

// Approximate cost of waking two threads and moving their data to other cores. If a pass takes less than this
// per member, handing it to another thread costs more than it saves.
constexpr absl::Duration kHandOffCost = absl::Microseconds(120);
// Upper bound of the expected pass time, because the pass blocks the thread that runs it.
constexpr absl::Duration kMaxTinyPass = absl::Milliseconds(1);

bool IsTiny(const Scheduler::Batch& batch) {
  const auto members = static_cast<int64_t>(batch.tasks.size());
  return batch.expected > absl::ZeroDuration() &&
         batch.expected < std::min(members * kHandOffCost, kMaxTinyPass);
}

}  // namespace

void DeviceGroup::Sweep() {
  Dropped dropped;
  {
    absl::MutexLock lock(&mutex_);
    scheduler_.Sweep(clock_->Now(), &dropped);
  }
  RejectAll(std::move(dropped));
}

void DeviceGroup::RejectAll(Dropped dropped) {
  for (auto& [task, why] : dropped) task->Reject(std::move(why));
}

bool DeviceGroup::AwaitBatch(Scheduler::ModelId model, int instance, Tasks* batch, Dropped* dropped) {
  const auto mine = [&] {
    mutex_.AssertHeld();
    return handed_out_.find({model, instance});
  };
  const auto drained = [&] {
    mutex_.AssertHeld();
    return scheduler_.closed(model) && scheduler_.queued(model) == 0;
  };
  const absl::Time wake_at = scheduler_.wake_at();
  // Must not call `clock_`, which evaluates this condition.
  const auto changed = [&] {
    mutex_.AssertHeld();
    return mine() != handed_out_.end() || scheduler_.wake_at() != wake_at || drained();
  };
  clock_->AwaitUntil(&mutex_, absl::Condition(&changed), wake_at);
  if (mine() == handed_out_.end()) HandOut(dropped);
  const auto found = mine();
  if (found == handed_out_.end()) return drained();
  *batch = std::move(found->second);
  handed_out_.erase(found);
  return false;
}

void DeviceGroup::HandOut(Dropped* dropped, Scheduler::ModelId model,
                          std::optional<TinyBatch<BatchTask>>* tiny) {
  while (auto batch = scheduler_.Next(clock_->Now(), dropped)) {
    const bool here = tiny != nullptr && !*tiny && batch->model == model && IsTiny(*batch);
    if (here) {
      tiny->emplace(TinyBatch<BatchTask>{batch->instance, std::move(batch->tasks)});
    } else {
      handed_out_[{batch->model, batch->instance}] = std::move(batch->tasks);
    }
  }
}

}  // namespace saccade::server
