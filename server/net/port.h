// A listening socket and the connections that came through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/net/connection_limits.h"
#include "server/net/event_loop.h"
#include "server/net/session.h"

// OpenSSL's SSL_CTX, declared here to keep OpenSSL out of this header.
struct ssl_ctx_st;

namespace saccade::server {

struct PortOptions {
  // The flag that sets `port`, for error messages.
  std::string port_flag;
  // A numeric address or a name of this machine.
  std::string host;
  // 0 picks a free port.
  int port = 0;
  // Connections are spread over them; all must outlive the port, and all ports with the same `limits`.
  std::vector<EventLoop*> loops;
  // The TLS context for connections that begin now; thread-safe. Null: no TLS.
  std::function<std::shared_ptr<ssl_ctx_st>()> tls;
  // Time to agree on TLS.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // When room is needed, connections that made no request for this time are closed before those that did.
  absl::Duration first_request_time = absl::Seconds(1);
  // Whether a busy connection is closed if there is no idle one: of the address that has the most, if that
  // has at least two more than the address of the new one.
  bool replaces_busy = false;
  // An answer must be read with at least this rate, measured after `write_grace`; else the connection ends.
  int64_t min_bytes_per_second = 256 << 10;
  absl::Duration write_grace = absl::Seconds(10);
  // Makes the session of a connection. Called on the connection's loop.
  std::function<std::unique_ptr<Session>(Transport* transport)> make_session;
  // Shared by all ports of the daemon; null: no bounds.
  ConnectionLimits* limits = nullptr;
  // May be null.
  RefusalCounter* refusals = nullptr;
};

// Thread-safe.
class Port {
 public:
  // Listens when it returns. INVALID_ARGUMENT for a host that is no address of this machine, ALREADY_EXISTS
  // if the port is in use (ports are not shared with other processes), PERMISSION_DENIED if it may not be
  // opened. The message names the flag.
  static absl::StatusOr<std::unique_ptr<Port>> Open(PortOptions options);
  // Closes.
  ~Port();

  int port() const;
  // Connections that are open at this moment.
  size_t connections() const;
  // Requests that were accepted and are not completely answered. Asks the loops and waits for them. Not on a
  // loop's thread.
  size_t open_requests() const;

  // Tells every connection to accept no new requests (Session::Drain). New connections are still accepted,
  // and drained at once: their clients learn that they should go elsewhere. Does not block.
  void Drain(absl::Duration grace);

  // Stops listening and closes every connection at once. Blocks until all sessions are destroyed. A second
  // call does nothing. Not on a loop's thread.
  void Close();

 private:
  class Impl;
  explicit Port(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
