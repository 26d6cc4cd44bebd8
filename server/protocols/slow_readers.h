// Ends calls whose clients take too long to read their answers: an unread answer holds memory that others
// need.
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
  // An answer may take `most` to be sent.
  SlowReaders(absl::Duration most, Clock* clock) : most_(most), clock_(clock) {}
  ~SlowReaders();

  // The call's answer is about to be sent.
  void Watch(grpc_call* call);
  // It was, or the call has ended otherwise. Once for each Watch.
  void Forget(grpc_call* call);

  // Cancels those that have taken too long. To be called now and then.
  void Sweep();

 private:
  const absl::Duration most_;
  Clock* const clock_;
  absl::Mutex mutex_;
  // Each is held by a reference, so that it exists while it is cancelled, which cannot be done under the
  // mutex: the call may end, and forget itself, within.
  absl::flat_hash_map<grpc_call*, absl::Time> sent_by_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
