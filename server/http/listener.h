// The socket that a server listens on.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace saccade::server {

// Owns the socket.
class Listener {
 public:
  // `port` 0 picks a free one. `port_flag` is for errors, whose codes are HttpServer::Start's. Unlike many
  // servers this one does not share its port: a second daemon gets an error, not half of the requests.
  static absl::StatusOr<Listener> Open(const std::string& host, int port, const std::string& port_flag);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int port() const { return port_; }

  // Blocks. The connection's socket, which the caller owns, or -1 with errno set.
  int Accept();

  // Ends a blocked Accept and makes every later one fail. Thread-safe.
  void Shutdown();

 private:
  Listener(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  int port_;
};

}  // namespace saccade::server
