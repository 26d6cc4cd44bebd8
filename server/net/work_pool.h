// A few threads for work that may block or take long, so that it does not hold up an event loop.
#pragma once

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// Thread-safe.
class WorkPool {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // `max_waiting` bounds the tasks that no thread has taken yet.
  WorkPool(int threads, size_t max_waiting);
  // Runs the waiting tasks, then ends the threads.
  ~WorkPool();

  // False, and `task` is destroyed, if too many wait. Exceptions of tasks are logged.
  bool Submit(Task task);

 private:
  void Work();
  bool HasWorkOrEnds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ || !waiting_.empty(); }

  const size_t max_waiting_;
  absl::Mutex mutex_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::server
