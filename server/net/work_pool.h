// A few threads for work that may block or take long, so that it does not hold up an event loop.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// Thread-safe.
class WorkPool {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // `max_waiting` bounds the tasks that no thread has taken yet. At most half of them, rounded up, may belong
  // to one client. RESOURCE_EXHAUSTED if the system has no threads left.
  static absl::StatusOr<std::unique_ptr<WorkPool>> Create(int threads, size_t max_waiting);
  // As Create(), but throws std::system_error.
  WorkPool(int threads, size_t max_waiting);
  // Runs the waiting tasks, then ends the threads.
  ~WorkPool();

  // False, and `task` is destroyed, if too many wait. Clients whose tasks wait take turns; `client` as in
  // Caller. Exceptions of tasks are logged.
  bool Submit(absl::string_view client, Task task);

 private:
  // Without threads.
  explicit WorkPool(size_t max_waiting) : max_waiting_(max_waiting) {}
  void Work();
  bool HasWorkOrEnds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ || waiting_ > 0; }
  // Allocates nothing. REQUIRES: a task waits.
  Task Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_waiting_;
  absl::Mutex mutex_;
  // One client's tasks that wait.
  struct Line {
    std::string client;
    std::deque<Task> tasks;
  };

  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // None is empty. In the order of their turns.
  std::list<Line> lines_ ABSL_GUARDED_BY(mutex_);
  // The keys are the lines' clients.
  std::map<absl::string_view, std::list<Line>::iterator> by_client_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::server
