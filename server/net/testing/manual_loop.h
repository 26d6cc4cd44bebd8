// A loop on virtual time, for tests: one thread, and time passes only when the test says so.
#pragma once

#include <algorithm>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/net/loop.h"

namespace saccade::server {

// The thread that constructs it is the loop's thread. Nothing runs but within RunUntilIdle() and AdvanceTo().
class ManualLoop final : public Loop {
 public:
  explicit ManualLoop(absl::Time start = absl::UnixEpoch() + absl::Hours(1)) : now_(start) {}

  absl::Time Now() const override { return now_; }

  // Thread-safe.
  void Post(Task task) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(fails_next_post_, false)) throw std::bad_alloc();
    posted_.push_back(std::move(task));
  }
  // The next Post() throws std::bad_alloc. Thread-safe.
  void FailNextPost() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    fails_next_post_ = true;
  }

  bool IsCurrent() const override { return thread_ == std::this_thread::get_id(); }

  // Runs `task` when all tasks and due timers have run, as EventLoop calls Watcher::OnEndOfRound().
  void AtEndOfRound(Task task) { at_end_.push_back(std::move(task)); }

  // Runs posted tasks and due timers until there are none.
  void RunUntilIdle() {
    while (RunTasks() || RunTimers() || RunAtEnd()) {
    }
  }

  // Moves time forward. Timers run at their own times, each followed by the tasks that it posts.
  void AdvanceTo(absl::Time time) {
    RunUntilIdle();
    while (timers().Next() <= time) {
      now_ = std::max(now_, timers().Next());
      RunUntilIdle();
    }
    now_ = std::max(now_, time);
  }
  void Advance(absl::Duration by) { AdvanceTo(now_ + by); }

 private:
  static bool RunAll(std::vector<Task> tasks) {
    for (Task& task : tasks) std::move(task)();
    return !tasks.empty();
  }

  bool RunTasks() {
    std::vector<Task> tasks;
    {
      absl::MutexLock lock(&mutex_);
      tasks.swap(posted_);
    }
    return RunAll(std::move(tasks));
  }

  bool RunTimers() {
    if (timers().Next() > now_) return false;
    timers().RunDue(now_);
    return true;
  }

  bool RunAtEnd() { return RunAll(std::exchange(at_end_, {})); }

  const std::thread::id thread_ = std::this_thread::get_id();
  absl::Time now_;
  std::vector<Task> at_end_;
  absl::Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  bool fails_next_post_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
