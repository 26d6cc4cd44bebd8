// Calls that block a thread, such as those of Client.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/load/load.h"

namespace saccade::client {

class BlockingCalls {
 public:
  // Starts the threads. `call` makes the call with this number; it runs on several threads concurrently.
  // There must be as many threads as calls in flight, or calls wait although they count as sent.
  BlockingCalls(int threads, std::function<CallResult(size_t number)> call);
  // Waits for the running calls. REQUIRES: the load has ended.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // Returns what hands a call to the threads. This object must outlive it.
  StartCall starter();

 private:
  void Add(const LoadCall& call, CallDone done) ABSL_LOCKS_EXCLUDED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<CallResult(size_t number)> call_;
  absl::Mutex mutex_;
  std::deque<std::pair<size_t, CallDone>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::client
