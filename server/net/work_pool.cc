#include "server/net/work_pool.h"

#include <exception>
#include <system_error>
#include <utility>

#include "server/logging/log.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<WorkPool>> WorkPool::Create(int threads, size_t max_waiting) {
  try {
    return std::make_unique<WorkPool>(threads, max_waiting);
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("cannot make a work pool: no thread is left");
  }
}

// If a thread cannot be started, the destructor ends those before it, because the other constructor has
// returned.
WorkPool::WorkPool(int threads, size_t max_waiting) : WorkPool(max_waiting) {
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
  if (const auto found = by_client_.find(client); found != by_client_.end()) {
    std::deque<Task>& tasks = found->second->tasks;
    if (tasks.size() >= (max_waiting_ + 1) / 2) return false;
    tasks.push_back(std::move(task));
  } else {
    // In this order nothing is changed if there is no memory.
    std::list<Line> added;
    added.push_back({std::string(client), {}});
    added.front().tasks.push_back(std::move(task));
    by_client_.emplace(added.front().client, added.begin());
    lines_.splice(lines_.end(), added);
  }
  ++waiting_;
  return true;
}

WorkPool::Task WorkPool::Take() {
  const auto line = lines_.begin();
  Task task = std::move(line->tasks.front());
  line->tasks.pop_front();
  --waiting_;
  if (line->tasks.empty()) {
    by_client_.erase(line->client);
    lines_.erase(line);
  } else {
    lines_.splice(lines_.end(), lines_, line);
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
