// One gRPC call as a service sees it.
//
// A service does not know how the call arrived: the daemon implements this interface on its own HTTP/2 server
// (grpc_exchange.h), and a test implements it on gRPC's runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Names are lower case. Values of names that end with "-bin" are the decoded bytes.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// What a client sent with a call beside its messages.
struct CallStart {
  // "/saccade.v1.Vision/Predict".
  std::string method;
  // The key of the client for limits, and its address (server/http/caller.h).
  std::string client;
  std::string address = {};
  Metadata metadata;
  // Times of Clock::Real().
  absl::Time arrival;
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline;
};

// How a call ends.
struct CallEnd {
  absl::Status status;
  // A serialised google.rpc.Status; empty if there is nothing to say beside code and message.
  std::string details = {};
  // Further trailers.
  Metadata trailers = {};
};

// The functions may be called on any thread, until Finish(), and return at once. None of them calls the
// handler before it returns, so the handler may hold a lock meanwhile. The object lives until
// CallHandler::OnDone(), which never comes before Finish().
class Call {
 public:
  virtual ~Call() = default;

  virtual const CallStart& start() const = 0;
  // For who may need it when the call is over.
  virtual std::shared_ptr<const CallStart> shared_start() const {
    return std::make_shared<const CallStart>(start());
  }

  // Asks for the next message: OnMessage() or OnHalfClose() follows, unless the call is cancelled. REQUIRES:
  // no earlier Read() is pending, and OnHalfClose() was not called.
  virtual void Read() = 0;
  // Sends a message: OnSent() follows. REQUIRES: no earlier Send() is pending. The message's owner is
  // released when the message has been written to the socket, or cannot be.
  virtual void Send(BytePieces message) = 0;
  // Ends the call, after the message that was sent. Must be called exactly once, also for a cancelled call.
  // Reads and sends that are pending may then be dropped.
  virtual void Finish(CallEnd end) = 0;
  // Send() and Finish() in one step. On another thread than the network's, this wakes the network only once.
  virtual void SendAndFinish(BytePieces message, CallEnd end) {
    Send(std::move(message));
    Finish(std::move(end));
  }

  // How the call ended for the client. REQUIRES: OnCancel() has been called. CANCELLED if the client is gone,
  // DEADLINE_EXCEEDED, or the code of the error with which the server ended the call.
  virtual absl::StatusCode cancel_code() const { return absl::StatusCode::kCancelled; }
};

// Receives the events of one call. One call of a function at a time, on the network's threads; none may
// block.
class CallHandler {
 public:
  virtual ~CallHandler() = default;

  // The handler's first call. `call` is valid until OnDone().
  virtual void OnStart(Call* call) = 0;
  // A message. Its owner keeps the bytes, and what the front charged for them, alive; it may be destroyed on
  // any thread.
  virtual void OnMessage(BytePieces message) = 0;
  // The client sends no more messages.
  virtual void OnHalfClose() = 0;
  // The message given to Send() was written to the socket; the next may follow. `ok` is false if the client
  // is gone.
  virtual void OnSent(bool ok) = 0;
  // The client is gone, has cancelled the call, its deadline has passed, or the server has ended the call (a
  // message that was too large, came too slowly, ...). Comes at most once, and not after Finish(). The
  // handler still has to call Finish().
  virtual void OnCancel() = 0;
  // The server shuts down, and the client may still send messages. Returns true if the handler will finish
  // the call with `end` once it has answered the messages that it has taken; false to have the call ended at
  // once, like an error of the server (OnCancel() follows). Comes at most once.
  virtual bool OnShutdown(const CallEnd& /*end*/) { return false; }
  // The call is over: Finish() was called, and the end was written or cannot be. Last call; the server then
  // drops its reference to the handler.
  virtual void OnDone() = 0;
};

// A handler should not throw. If it does, the client gets INTERNAL and the handler OnCancel(); it still has
// to call Finish().

// One method of a service.
struct CallMethod {
  // "/saccade.v1.Vision/Predict".
  std::string path;
  // Makes the handler of one call. Thread-safe.
  std::function<std::shared_ptr<CallHandler>()> make;
  // The client sends one message and then its half-close. The call is ended if it waits for those too long.
  bool one_message = false;
  // The handler charges its answers to the ledger, by their owners. Otherwise the front does.
  bool charges_answers = false;
  // Maximum size of a message, for a method whose messages are small: they are charged together with the
  // call's head, before any of them comes. The client sends one message, which ends the call if it does not
  // begin in time, and bytes that come before the handler asks for them end the call too, unless
  // `one_message` is set. 0: GrpcHandler::Options has the bound, and each message is charged when it comes.
  int64_t max_message_bytes = 0;
  // Bytes that a compressed message may become although its ratio is exceeded; as GrpcHandler::Options has
  // it, if that is less.
  int64_t max_growth_bytes = std::numeric_limits<int64_t>::max();
};

}  // namespace saccade::server
