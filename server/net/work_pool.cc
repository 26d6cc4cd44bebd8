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

bool WorkPool::Submit(absl::string_view client, Task task) {
  absl::MutexLock lock(&mutex_);
  if (waiting_ >= max_waiting_) return false;
  auto line = tasks_.find(client);
  if (line == tasks_.end()) {
    turns_.emplace_back(client);
    line = tasks_.try_emplace(std::string(client)).first;
  } else if (line->second.size() >= (max_waiting_ + 1) / 2) {
    return false;
  }
  line->second.push_back(std::move(task));
  ++waiting_;
  return true;
}

WorkPool::Task WorkPool::Take() {
  std::string client = std::move(turns_.front());
  turns_.pop_front();
  const auto line = tasks_.find(client);
  Task task = std::move(line->second.front());
  line->second.pop_front();
  --waiting_;
  if (line->second.empty()) {
    tasks_.erase(line);
  } else {
    turns_.push_back(std::move(client));
  }
  return task;
}

void WorkPool::Work() {
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(this, &WorkPool::HasWorkOrEnds));
      if (waiting_ == 0) return;
      task = Take();
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
