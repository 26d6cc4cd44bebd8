// Base class of streaming calls, which reads, sends and finishes from several threads in a safe order.
#pragma once

#include <memory>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_pieces.h"
#include "server/grpc/call.h"

namespace saccade::server {

// A stream's state changes on the network's threads (messages, cancellation) and on those that compute its
// responses. After each change, Proceed() asks the derived class what to do next and does it. Finish() is the
// last thing that is done to the call, and is done once.
class DrivenCall : public CallHandler, public std::enable_shared_from_this<DrivenCall> {
 public:
  void OnStart(Call* call) final;
  void OnDone() final {}

 protected:
  struct ReadMessage {};
  // Nothing, Call::Read(), Call::Send() or Call::Finish().
  using Action = std::variant<std::monostate, ReadMessage, BytePieces, CallEnd>;

  // The call has arrived; start() is valid from here on. Nothing was read yet.
  virtual void OnArrival() {}
  // Returns what can be done now, and records that it was done. Not called again after it has returned a
  // CallEnd. Must respect the conditions of Call: one pending read and one pending send at most.
  virtual Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Does what can be done until there is nothing. Call after each change of the state. If NextAction() or a
  // function of Call throws, the call ends with INTERNAL. If that throws too, so does Proceed(), and the next
  // one tries again. REQUIRES: OnStart() was called.
  void Proceed() ABSL_LOCKS_EXCLUDED(mutex_);

  // The end of a call that an exception has stopped: INTERNAL, without a message if there is no memory for
  // it. Does not throw.
  static absl::Status OwnError();
  // CANCELLED, without a message if there is no memory for it. Does not throw.
  static absl::Status Cancelled(absl::string_view why);

  // Valid as long as this object, because what computes responses may end after the call.
  const CallStart& start() const { return *start_; }

  // Guards the state that NextAction() depends on.
  absl::Mutex mutex_;

 private:
  void Act() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Call* call_ = nullptr;
  std::shared_ptr<const CallStart> start_;
  // An exception has ended the stream.
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  // Call::Finish() has returned.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
