// The protocol of one connection, separated from its socket.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

#include "absl/status/status.h"
#include "server/net/loop.h"
#include "server/net/output.h"
#include "server/net/peer.h"
#include "server/net/refusal.h"

namespace saccade::server {

// What a session may ask of its connection. Loop's thread only. Implemented by Connection, and by SessionPipe
// in tests.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Loop& loop() = 0;
  virtual const Peer& peer() const = 0;
  // The protocol that TLS agreed on by ALPN ("h2", "http/1.1"); empty if none.
  virtual std::string_view alpn() const = 0;

  // Append to it, then call Flush().
  virtual Output& output() = 0;
  // Writes the output at the end of the current round of the loop, as far as the socket takes it. Whenever
  // the output has become smaller than kLowWater afterwards, Session::OnWritable() is called.
  virtual void Flush() = 0;
  // Stops or resumes reading from the client. Bytes that were read already are still delivered.
  virtual void PauseReading(bool pause) = 0;
  // Writes the output, then closes: sends the end of the stream, reads what the client still sends for a
  // moment, so that the last answer is not lost to a reset, and calls Session::OnLost(). The session receives
  // nothing more.
  virtual void CloseAfterOutput() = 0;
  // Closes at once. Session::OnLost() is called from the loop, not from within this call.
  virtual void Abort() = 0;

  // A session that has more output than this should stop producing until OnWritable().
  static constexpr size_t kHighWater = size_t{256} << 10;
  static constexpr size_t kLowWater = size_t{64} << 10;
};

// One object for each connection; destroyed after OnLost(). All calls come on the loop's thread, one at a
// time.
class Session {
 public:
  virtual ~Session() = default;

  // The connection is established (for TLS: the handshake is done).
  virtual void OnOpen() = 0;
  // Bytes from the client, valid during the call. Never empty.
  virtual void OnBytes(std::string_view bytes) = 0;
  // The client has closed its direction.
  virtual void OnEnd() = 0;
  // The client has closed its direction while reading is paused; bytes may wait before the end. Called once.
  virtual void OnEndAhead() {}
  virtual void OnWritable() = 0;
  // The connection is closed or broken. Last call.
  virtual void OnLost() = 0;

  // Accepts no new requests, tells the client so, and closes the connection once the accepted requests are
  // answered. `grace` says how long requests may still arrive that the client sent before it heard of it.
  virtual void Drain(absl::Duration grace) = 0;

  // The most bytes that OnBytes() should be given now: what cannot be used at once has to be kept.
  virtual size_t max_read() const { return std::numeric_limits<size_t>::max(); }

  // What the connection's place is worth when room is needed for a new one: connections that serve requests
  // are not closed for that.
  virtual bool IsIdle() const = 0;
  // Requests that were accepted and not completely answered.
  virtual size_t open_requests() const = 0;
  // Those of them that have come completely, or have a part of an answer that is not written.
  virtual size_t accepted_requests() const { return open_requests(); }
};

}  // namespace saccade::server
