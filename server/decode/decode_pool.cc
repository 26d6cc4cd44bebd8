#include "server/decode/decode_pool.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/inline_passes.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<DecodePool>> DecodePool::Create(DecodePoolOptions options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, "; it has to be at least 1"));
  }
  if (options.max_pending < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_pending is ", options.max_pending, "; it has to be at least 1"));
  }
  std::unique_ptr<DecodePool> pool(new DecodePool(std::move(options)));
  if (absl::Status started = pool->Start(); !started.ok()) return started;
  return pool;
}

DecodePool::~DecodePool() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status DecodePool::Schedule(Task task, const DecodeQueue::Order& order,
                                  absl::AnyInvocable<void(absl::Status) &&> reject) {
  DecodeQueue::Pushed pushed;
  {
    absl::MutexLock lock(&mutex_);
    pushed = queue_.Push(order, {.run = std::move(task), .reject = std::move(reject)});
  }
  if (!pushed.removed) return absl::OkStatus();
  absl::Status full = absl::ResourceExhaustedError(
      absl::StrCat("the decode pool is full: ", options_.max_pending,
                   " tasks are queued, the maximum, and others go first; try again later"));
  if (!pushed.taken) return full;
  std::move(pushed.removed->reject)(std::move(full));
  return absl::OkStatus();
}

int64_t DecodePool::pending() const {
  absl::MutexLock lock(&mutex_);
  return queue_.due();
}

absl::Duration DecodePool::TakeDemand() {
  absl::MutexLock lock(&mutex_);
  return queue_.TakeDemand();
}

absl::Status DecodePool::Start() {
  try {
    for (int i = 0; i < options_.threads; ++i) {
      threads_.emplace_back([this] { Work(); });
      // Linux limits thread names to 15 characters.
      pthread_setname_np(threads_.back().native_handle(), absl::StrCat("decode-", i).substr(0, 15).c_str());
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("the system started only ", threads_.size(), " of ",
                                                     options_.threads, " decode threads: ", error.what()));
  }
  return absl::OkStatus();
}

void DecodePool::Work() {
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || queue_.has_due(); };
  for (;;) {
    std::optional<DecodeQueue::Taken> taken;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&due));
      taken = queue_.Pop();
      // Closed. If jobs are left, threads that run long ones take them afterwards.
      if (!taken) return;
    }
    const absl::Time started = options_.clock->Now();
    const absl::Duration passes_before = InlinePassTime();
    try {
      std::move(taken->job.run)();
    } catch (const std::exception& error) {
      if (options_.on_exception) options_.on_exception(error.what());
    } catch (...) {
      if (options_.on_exception) options_.on_exception("an exception of unknown type");
    }
    // Frees what the task holds before the next one is waited for.
    taken->job = {};
    // A task may compute forward passes, which are no decoding.
    const absl::Duration passes = InlinePassTime() - passes_before;
    absl::MutexLock lock(&mutex_);
    queue_.Done(*taken, options_.clock->Now() - started - passes);
  }
}

}  // namespace saccade::server
