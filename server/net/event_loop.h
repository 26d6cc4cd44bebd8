// A loop on epoll, with a thread of its own.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/net/loop.h"

namespace saccade::server {

// Receives the events of one file descriptor. Loop's thread only.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // `events` are epoll's.
  virtual void OnEvents(uint32_t events) = 0;
  // See EventLoop::AtEndOfRound().
  virtual void OnEndOfRound() {}

 private:
  friend class EventLoop;
  // The next one whose OnEndOfRound() is due.
  Watcher* next_at_end_ = nullptr;
};

class EventLoop final : public Loop {
 public:
  // Starts the thread; `name` is its name (at most 15 characters). RESOURCE_EXHAUSTED if the system has no
  // descriptors or threads left.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create(const std::string& name);
  // Ends the thread after the tasks that were posted. REQUIRES: nothing is watched any more. Not on its
  // thread.
  ~EventLoop() override;

  absl::Time Now() const override { return now_; }
  void Post(Task task) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsCurrent() const override { return thread_id_.load() == std::this_thread::get_id(); }

  // Loop's thread only. The watcher must stay until Unwatch(); after that it gets no more events, not even of
  // the current round. Watch() returns false if the system has no memory for it. None of them allocates.
  bool Watch(int fd, uint32_t events, Watcher* watcher);
  void Change(int fd, uint32_t events, Watcher* watcher);
  void Unwatch(int fd, Watcher* watcher);

  // Calls `watcher->OnEndOfRound()` when the current round's events and tasks are done, before the loop waits
  // again. Until then the watcher must stay, and must not be passed again. Allocates nothing. Loop's thread
  // only. Used to write what a round has produced with one system call.
  void AtEndOfRound(Watcher* watcher);

 private:
  EventLoop(int epoll_fd, int wake_fd);

  void Run();
  // Waits for events once and does the work that follows. False if the loop is to end.
  bool RunRound();
  void Dispatch(uint32_t events, Watcher* watcher);
  void RunPosted();
  void RunAtEnd();
  int MillisecondsToWait();

  const int epoll_fd_;
  // An eventfd, written when a task is posted while the thread sleeps. It is watched edge-triggered, so it
  // need not be read.
  const int wake_fd_;
  absl::Time now_;
  // Those of the current round that were not dispatched yet. Null watchers have none.
  absl::Span<epoll_event> events_;
  // A list of the watchers passed to AtEndOfRound(). Null if there are none.
  Watcher* first_at_end_ = nullptr;
  Watcher* last_at_end_ = nullptr;
  // The tasks that run now. The vectors are swapped, so that a round allocates nothing.
  std::vector<Task> running_;

  absl::Mutex mutex_;
  std::vector<Task> posted_ ABSL_GUARDED_BY(mutex_);
  // Whether a posted task must wake the thread.
  bool sleeping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

}  // namespace saccade::server
