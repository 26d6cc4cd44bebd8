// Threads that decode pictures and encode large answers, so that neither the network's threads nor the
// instances' have to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/core/clock.h"
#include "server/decode/decode_queue.h"

namespace saccade::server {

struct DecodePoolOptions {
  // Number of threads; each decodes one picture at a time on one core. If there are several, all but
  // one at most run tasks that may be long (DecodeQueue::Order).
  int threads = 1;

  // Maximum number of tasks waiting for a thread. Each holds an encoded picture in memory, and a task that
  // would wait past its deadline is better rejected at once.
  int64_t max_pending = 256;

  // Measures how long tasks take; must outlive the pool.
  Clock* clock = Clock::Real();

  // Called with the message of an exception that escaped from a task, on the thread that ran it. Must be
  // thread-safe and must not throw. If null, such exceptions are ignored.
  std::function<void(const std::string& what)> on_exception = nullptr;
};

// Thread-safe.
class DecodePool {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // Starts the threads. INVALID_ARGUMENT for invalid options, RESOURCE_EXHAUSTED if a thread cannot be
  // started.
  static absl::StatusOr<std::unique_ptr<DecodePool>> Create(DecodePoolOptions options);

  // Runs all scheduled tasks, then joins the threads. REQUIRES: not called from a task.
  ~DecodePool();

  // Runs `task` on one of the threads, in the order of DecodeQueue. Never blocks. RESOURCE_EXHAUSTED if there
  // is no room: `task` is then dropped and will not run. If it takes the place of another task, that one's
  // `reject` is called, on this thread. A task without `reject` runs once it was taken.
  absl::Status Schedule(Task task, const DecodeQueue::Order& order = {},
                        absl::AnyInvocable<void(absl::Status) &&> reject = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Number of tasks that wait for a thread, without those that wait until another long one has ended.
  int64_t pending() const ABSL_LOCKS_EXCLUDED(mutex_);

  // See DecodeQueue::TakeDemand(): time of one thread.
  absl::Duration TakeDemand() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit DecodePool(DecodePoolOptions options)
      : options_(std::move(options)),
        queue_(options_.max_pending, /*max_long_running=*/std::max(1, options_.threads - 1)) {}

  absl::Status Start();
  void Work();

  const DecodePoolOptions options_;
  mutable absl::Mutex mutex_;
  DecodeQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::server
