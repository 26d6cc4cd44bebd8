// Hands copies of requests to their shadow version, on a thread of its own.
#pragma once

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/shadow_copy.h"

namespace saccade::server {

// Thread-safe. The threads of a shadow version run only on idle cores, so that one of them may hold the lock
// of its queue for long. Threads that compute for clients therefore never take that lock, and leave it to the
// thread of this object.
class ShadowSender {
 public:
  ShadowSender();
  // Calls Close().
  ~ShadowSender();
  ShadowSender(const ShadowSender&) = delete;
  ShadowSender& operator=(const ShadowSender&) = delete;

  // Does not block. The number of copies is bounded by the Shadow that admitted them. Without memory for them
  // they are dropped.
  void Send(ShadowCopies copies) ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops copies that were not handed over yet, and all later ones. Blocks until the thread has ended.
  // Idempotent.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::deque<ShadowCopies> waiting_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace saccade::server
