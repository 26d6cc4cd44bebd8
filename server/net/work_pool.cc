#include "server/net/work_pool.h"

#include <exception>
#include <utility>

#include "server/logging/log.h"

namespace saccade::server {

WorkPool::WorkPool(int threads, size_t max_waiting) : max_waiting_(max_waiting) {
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkPool::~WorkPool() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::Submit(Task task) {
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() >= max_waiting_) return false;
  waiting_.push_back(std::move(task));
  return true;
}

void WorkPool::Work() {
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(this, &WorkPool::HasWorkOrEnds));
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      std::move(task)();
    } catch (const std::exception& error) {
      Log(LogLevel::kError, "a task of the work pool failed", {{"error", absl::string_view(error.what())}});
    } catch (...) {
      Log(LogLevel::kError, "a task of the work pool failed");
    }
  }
}

}  // namespace saccade::server
