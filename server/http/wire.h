// How a connection's bytes go over its socket: as they are, or within TLS.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// OpenSSL's, which stays out of this header.
struct ssl_ctx_st;

namespace saccade::server {

// Whether an operation on a socket that failed with `error` can be tried again.
inline bool IsTransient(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Nothing blocks: what cannot go on returns -1 and says in `await` for what of the socket, POLLIN or POLLOUT;
// 0 there means that the connection is lost. Used by one thread.
class Wire {
 public:
  virtual ~Wire() = default;

  // What has to be said before the first byte; 0 once it is.
  virtual int Greet(short* await) = 0;
  // The greeting failed because the client speaks HTTP without TLS.
  virtual bool met_plain_http() const { return false; }

  // Bytes received, 0 at the end.
  virtual ssize_t Receive(char* to, size_t size, short* await) = 0;
  // 1 once there is a byte to be received, 0 at the end.
  virtual ssize_t Peek(short* await) = 0;
  // Bytes sent of the pieces, without the first `skipped`, at least one. After a -1 the same has to be sent
  // again.
  virtual ssize_t Send(absl::Span<const absl::string_view> pieces, size_t skipped, short* await) = 0;
  // Tells the client that no more comes, if it is told at all.
  virtual void EndSending() = 0;
};

// Neither owns the socket.
std::unique_ptr<Wire> PlainWire(int fd);
// Null if there is no memory for it.
std::unique_ptr<Wire> TlsWire(int fd, const std::shared_ptr<ssl_ctx_st>& context);

}  // namespace saccade::server
