#include "server/decode/decode_pool.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

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

absl::Status DecodePool::Schedule(Task task) {
  absl::MutexLock lock(&mutex_);
  const int64_t waiting = static_cast<int64_t>(tasks_.size());
  if (waiting >= options_.max_pending) {
    return absl::ResourceExhaustedError(absl::StrCat("the decode pool is full: ", waiting,
                                                     " tasks are queued, the maximum; try again later"));
  }
  tasks_.push_back(std::move(task));
  return absl::OkStatus();
}

int64_t DecodePool::pending() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(tasks_.size());
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
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !tasks_.empty(); };
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&due));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      std::move(task)();
    } catch (const std::exception& error) {
      if (options_.on_exception) options_.on_exception(error.what());
    } catch (...) {
      if (options_.on_exception) options_.on_exception("an exception of unknown type");
    }
  }
}

}  // namespace saccade::server
