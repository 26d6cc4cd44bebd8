// A client's connection, with a bound on everything that the client could drag out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/http_server.h"

namespace saccade::server {

enum class HeadResult { kComplete, kClosed, kTooLarge, kTimedOut };

// Owns the socket. Used by one thread, but for Interrupt.
class Connection {
 public:
  // `options` must outlive the connection.
  Connection(int fd, const HttpServerOptions& options) : fd_(fd), options_(options) {}
  ~Connection();

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Blocks until a request begins; false if none does within the idle timeout, or the client has gone.
  bool AwaitRequest();

  // Reads up to the empty line that ends the headers; it stays to be read by Read. The read timeout begins
  // here.
  HeadResult ReadHead();

  // As of recv: bytes read, 0 at the end, -1 on an error or at the read timeout.
  ssize_t Read(char* to, size_t size);

  // Writes everything, or returns false on an error or at the write timeout, which begins with the first
  // write after a ReadHead.
  bool Write(absl::string_view bytes);

  // A read or write failed, so what the client sends next is no request.
  bool broken() const { return broken_; }

  // Takes what the client is still sending, for a while: closing at once would reset the connection, and with
  // it the answer on its way.
  void Linger();

  // Makes the reading calls of the owning thread end soon. Thread-safe.
  void Interrupt();

 private:
  using Clock = std::chrono::steady_clock;

  bool AwaitReady(short events, Clock::time_point deadline) const;
  ssize_t Receive(char* to, size_t size, Clock::time_point deadline);

  const int fd_;
  const HttpServerOptions& options_;
  // What was received and not read yet.
  std::string ahead_;
  Clock::time_point read_deadline_;
  Clock::time_point write_deadline_;
  bool writing_ = false;
  bool broken_ = false;
};

}  // namespace saccade::server
