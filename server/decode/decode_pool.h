// Threads that turn pictures into tensors, so that neither gRPC's threads nor the instances do.
#pragma once

#include <cstdint>
#include <deque>
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

namespace saccade::server {

struct DecodePoolOptions {
  // Each decodes one picture at a time on one core. Zero takes one per core of the machine.
  int threads = 0;

  // Tasks waiting for a thread. Each keeps an encoded picture alive, and what waits longer than its deadline
  // was better refused at once.
  int64_t max_pending = 256;

  // Told of an exception that left a task, from the thread it ran on; must be thread-safe and not throw
  // itself. Null ignores it.
  std::function<void(const std::string& what)> on_exception = nullptr;
};

// Thread-safe.
class DecodePool {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  // Starts the threads. INVALID_ARGUMENT for options that make no sense, RESOURCE_EXHAUSTED if the system
  // gives no thread.
  static absl::StatusOr<std::unique_ptr<DecodePool>> Create(DecodePoolOptions options);

  // Finishes what was scheduled, then joins. REQUIRES: not called from a task.
  ~DecodePool();

  // Runs `task` on one of the threads, in the order of scheduling; never blocks. RESOURCE_EXHAUSTED if
  // max_pending wait already: the task was not taken and will not run.
  absl::Status Schedule(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tasks waiting for a thread now.
  int64_t pending() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit DecodePool(DecodePoolOptions options) : options_(std::move(options)) {}

  absl::Status Start();
  void Work();

  const DecodePoolOptions options_;
  mutable absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::server
