// A client's connection, with a bound on everything that the client could drag out.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/http/wire.h"

namespace saccade::server {

enum class Greeting { kDone, kPlainHttp, kFailed };
enum class HeadResult { kComplete, kClosed, kTooLarge, kTimedOut };

// Owns the socket. Used by one thread, but for Interrupt and Done.
class Connection final : public HttpClient {
 public:
  // `options` must outlive the connection.
  Connection(int fd, const HttpServerOptions& options);
  ~Connection() override;

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Agrees with the client on TLS, if that is spoken here, within the handshake timeout. After kPlainHttp the
  // client can still be told why, as plainly as it asked.
  Greeting Greet();

  // Blocks until a request begins; false if none does within the idle timeout, or the client has gone.
  bool AwaitRequest();

  // Reads up to the empty line that ends the headers, which Head() then has. The time to read begins here.
  HeadResult ReadHead();
  // What ReadHead read, until the next call of another function.
  absl::string_view Head() const { return absl::string_view(ahead_).substr(0, head_size_); }
  // To be called once the head is not needed any more, before the body is read.
  void DropHead();

  // As of recv: bytes read, 0 at the end, -1 on an error, errno ETIMEDOUT when the time to read is over.
  ssize_t Read(char* to, size_t size);

  // What has come and was not read yet; Fetch adds to it, with results as of Read, and Drop takes from its
  // front.
  absl::string_view Fetched() const { return absl::string_view(ahead_).substr(dropped_); }
  ssize_t Fetch(size_t max);
  void Drop(size_t size);

  // Writes everything, or returns false on an error or when the time to write is over, which begins with the
  // first write after a ReadHead.
  bool Write(absl::Span<const absl::string_view> pieces);

  // A read or write failed, so what the client sends next is no request.
  bool broken() const { return broken_; }

  // Takes what the client is still sending, for a while: closing at once would reset the connection, and with
  // it the answer on its way.
  void Linger();

  // Makes the reading calls of the owning thread end soon. Thread-safe.
  void Interrupt();

  std::string Address() const override;
  void AwaitDone(absl::FunctionRef<void()> gone) override;
  void Done() override;

 private:
  using Clock = std::chrono::steady_clock;

  bool AwaitReady(short events, Clock::time_point deadline) const;
  ssize_t Receive(char* to, size_t size, Clock::time_point deadline);
  ssize_t ReceiveInTime(char* to, size_t size);
  // A client gets the longer the more it has moved.
  Clock::time_point Deadline(Clock::time_point begin, absl::Duration timeout, size_t moved) const;

  const int fd_;
  // Counts Done.
  const int done_fd_;
  const HttpServerOptions& options_;
  // Null if it could not be set up.
  std::unique_ptr<Wire> wire_;
  // What was received; of that `dropped_` bytes were read.
  std::string ahead_;
  size_t dropped_ = 0;
  size_t head_size_ = 0;
  Clock::time_point read_begin_;
  Clock::time_point write_begin_;
  size_t received_ = 0;
  size_t sent_ = 0;
  bool writing_ = false;
  bool broken_ = false;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace saccade::server
