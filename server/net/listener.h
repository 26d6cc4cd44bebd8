// The socket that a server listens on.
#pragma once

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"

namespace saccade::server {

// Owns the socket, which does not block.
class Listener {
 public:
  // `port` 0 picks a free one. `port_flag` is for errors, whose codes are Port::Open's. The port is not
  // shared with other processes: a second daemon gets an error, not half of the connections.
  static absl::StatusOr<Listener> Open(const std::string& host, int port, const std::string& port_flag);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_; }
  int port() const { return port_; }

  // The socket of a new connection, which the caller owns and which does not block, or -1 with errno set.
  int Accept(sockaddr_storage* peer);

 private:
  Listener(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  const int port_;
};

}  // namespace saccade::server
