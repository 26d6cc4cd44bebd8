#include "server/batching/device_group.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"

namespace saccade::server {
namespace {

// Approximate cost of waking two threads and moving their data to other cores. If a pass takes less than this
// per member, handing it to another thread costs more than it saves.
constexpr absl::Duration kHandOffCost = absl::Microseconds(120);
// Upper bound of the expected pass time, because the pass blocks the thread that runs it.
constexpr absl::Duration kMaxTinyPass = absl::Milliseconds(1);
// Time after which batches that are due are tried again when handing them out has failed.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(10);

bool IsTiny(const Scheduler::Batch& batch) {
  const auto members = static_cast<int64_t>(batch.tasks.size());
  return batch.expected > absl::ZeroDuration() &&
         batch.expected < std::min(members * kHandOffCost, kMaxTinyPass);
}

}  // namespace

DeviceGroup::DeviceGroup(const SchedulerOptions& options, Clock* clock, Report report, Waker* waker)
    : cores_(options.cores),
      clock_(clock),
      report_(std::move(report)),
      waker_(waker),
      scheduler_(options),
      demand_(scheduler_.demand()),
      timer_(waker == nullptr ? std::thread([this] { RunTimer(); }) : std::thread()) {}

DeviceGroup::~DeviceGroup() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  timer_signal_.Set();
  if (timer_.joinable()) timer_.join();
}

void DeviceGroup::Sweep() {
  RejectedAtEnd dropped(this);
  absl::MutexLock lock(&mutex_);
  SweepInto(&dropped.tasks);
}

// The analysis does not see that the cleanup unlocks.
void DeviceGroup::TrySweep() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  RejectedAtEnd dropped(this);
  if (!mutex_.TryLock()) return;
  const absl::Cleanup unlock = [this] {
    mutex_.AssertHeld();
    mutex_.Unlock();
  };
  SweepInto(&dropped.tasks);
}

void DeviceGroup::SweepInto(Dropped* dropped) {
  // Also if something throws, because the last tasks of a closed model may have been dropped.
  const absl::Cleanup end_drained = [this] {
    mutex_.AssertHeld();
    EndDrained();
  };
  scheduler_.Sweep(clock_->Now(), dropped);
}

void DeviceGroup::RejectAll(Dropped dropped) const {
  for (auto& [task, why] : dropped) {
    try {
      task->Reject(std::move(why));
    } catch (const std::exception& error) {
      Tell(error.what());
    }
  }
}

bool DeviceGroup::IsDrained(Scheduler::ModelId model) const {
  return scheduler_.closed(model) && scheduler_.queued(model) == 0;
}

void DeviceGroup::HandOut(Dropped* dropped, Scheduler::ModelId model,
                          std::optional<TinyBatch<BatchTask>>* tiny) {
  while (auto batch = scheduler_.Next(clock_->Now(), dropped)) {
    const bool here = tiny != nullptr && !*tiny && batch->model == model && IsTiny(*batch);
    if (here) {
      tiny->emplace(TinyBatch<BatchTask>{batch->instance, std::move(batch->tasks)});
    } else {
      Instance& instance = *instances_.at(batch->model)[static_cast<size_t>(batch->instance)];
      instance.batch = std::move(batch->tasks);
      WakeInstance(batch->model, batch->instance, instance);
    }
  }
  EndDrained();
  if (scheduler_.wake_at() < timer_at_) {
    timer_at_ = scheduler_.wake_at();
    WakeTimer();
  }
}

void DeviceGroup::HandOutSafely(Dropped* dropped, Scheduler::ModelId model,
                                std::optional<TinyBatch<BatchTask>>* tiny) {
  try {
    HandOut(dropped, model, tiny);
  } catch (const std::exception& error) {
    Tell(error.what());
    unfinished_ = true;
    WakeTimer();
  }
}

void DeviceGroup::EndDrained() {
  for (size_t i = 0; i < closing_.size();) {
    if (!IsDrained(closing_[i])) {
      ++i;
      continue;
    }
    int index = 0;
    for (const auto& instance : instances_.at(closing_[i])) WakeInstance(closing_[i], index++, *instance);
    closing_.erase(closing_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void DeviceGroup::WakeInstance(Scheduler::ModelId model, int index, Instance& instance) {
  if (waker_ != nullptr) return waker_->WakeInstance(model, index);
  instance.signal.Set();
}

void DeviceGroup::WakeTimer() {
  if (waker_ != nullptr) return waker_->WakeTimer();
  timer_signal_.Set();
}

void DeviceGroup::RunTimer() {
  for (;;) {
    absl::Time next;
    try {
      const auto due = HandOutDue();
      if (!due) return;
      next = *due;
    } catch (const std::exception& error) {
      Tell(error.what());
      next = clock_->Now() + kRetryAfter;
    }
    try {
      timer_signal_.AwaitUntil(clock_, next);
    } catch (const std::exception& error) {
      Tell(error.what());
      // The clock had no memory to wait, so this thread waits without it.
      absl::SleepFor(kRetryAfter);
    }
  }
}

std::optional<absl::Time> DeviceGroup::HandOutDue() {
  RejectedAtEnd dropped(this);
  absl::Time next;
  {
    absl::MutexLock lock(&mutex_);
    if (ending_) return std::nullopt;
    if (unfinished_ || clock_->Now() >= scheduler_.wake_at()) {
      // Stays true if this throws.
      unfinished_ = true;
      HandOut(&dropped.tasks);
      unfinished_ = false;
    }
    next = timer_at_ = scheduler_.wake_at();
  }
  return next;
}

}  // namespace saccade::server
