// Cancels calls whose clients take too long to read their answers, because unread answers hold memory.
#pragma once

#include <grpc/grpc.h>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

// Thread-safe.
class SlowReaders {
 public:
  // `max` is the time that sending an answer may take.
  SlowReaders(absl::Duration max, Clock* clock) : max_(max), clock_(clock) {}
  ~SlowReaders();

  // Call before the answer is sent.
  void Watch(grpc_call* call);
  // Call once for each Watch(), when the answer was sent or the call has ended otherwise.
  void Forget(grpc_call* call);

  // Cancels the calls that have taken too long. Call regularly.
  void Sweep();

 private:
  const absl::Duration max_;
  Clock* const clock_;
  absl::Mutex mutex_;
  // Calls and their deadlines. Each call is referenced, so that it exists while Sweep() cancels it without
  // holding the mutex: the call may end, and call Forget(), during that.
  absl::flat_hash_map<grpc_call*, absl::Time> sent_by_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
