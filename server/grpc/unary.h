// Methods with one request and one response.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/core/byte_pieces.h"
#include "server/core/cancellation.h"
#include "server/grpc/call.h"

namespace saccade::server {

// One call of a unary method, as its function sees it. Thread-safe.
class UnaryCall {
 public:
  virtual ~UnaryCall() = default;

  virtual const CallStart& start() const = 0;
  // Raised when the client is gone or its deadline has passed.
  virtual const std::shared_ptr<Cancellation>& cancellation() const = 0;

  // Ends the call with a response. `response` is dropped if the call was cancelled. Call either function
  // exactly once, on any thread.
  virtual void Respond(BytePieces response) = 0;
  virtual void Fail(CallEnd end) = 0;
};

// Called on a network thread once the request is complete; must not block. `call` may be kept until it is
// answered; if it is dropped without that, or the function throws, the call ends with INTERNAL. A call
// without a message is answered by the caller of this function (INVALID_ARGUMENT), see UnaryMethod().
using UnaryFunction = std::function<void(std::shared_ptr<UnaryCall> call, BytePieces request)>;

// `message` names the request's type in errors: "inference.ModelInferRequest". `no_message`, if given, is
// called for each call that ended without a message, with the call's code: INVALID_ARGUMENT; CANCELLED or
// DEADLINE_EXCEEDED if the call ended before its message arrived; or the code with which the server rejected
// the message.
CallMethod UnaryMethod(std::string path, std::string message, UnaryFunction function,
                       std::function<void(absl::StatusCode)> no_message = nullptr);

}  // namespace saccade::server
