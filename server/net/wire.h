// How a connection's bytes go over its socket: as they are, or encrypted by TLS.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/types/span.h"

// OpenSSL's SSL_CTX, declared here to keep OpenSSL out of this header.
struct ssl_ctx_st;

namespace saccade::server {

// Whether an operation on a socket that failed with `error` can be tried again.
inline bool IsTransient(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// What an operation that returned -1 waits for.
enum class Await {
  kNothing,  // the connection is broken
  kReadable,
  kWritable,
};

// Loop's thread only. Nothing blocks: an operation that cannot go on returns -1 and says in `await` for what
// the socket must be watched before it is tried again.
class Wire {
 public:
  virtual ~Wire() = default;

  // Agrees on TLS. 0 when that is done.
  virtual int Handshake(Await* await) = 0;
  // Whether the handshake failed because the client speaks HTTP without TLS.
  virtual bool met_plain_http() const { return false; }
  // The protocol that was agreed on by ALPN; empty if none.
  virtual std::string_view alpn() const { return {}; }

  // The number of received bytes, or 0 at the end of the client's direction.
  virtual ssize_t Receive(char* to, size_t size, Await* await) = 0;
  // Whether bytes were taken from the socket that Receive() has not returned yet. The socket may not become
  // readable for them.
  virtual bool has_received() const { return false; }
  // The number of bytes sent from the beginning of `pieces`, which are not empty. After a -1 the next call
  // must begin with the same bytes.
  virtual ssize_t Send(absl::Span<const iovec> pieces, Await* await) = 0;
  // Sends TLS's end of the stream, if the socket takes it.
  virtual void EndSending() {}
};

// Neither owns the socket, which must not block.
std::unique_ptr<Wire> MakePlainWire(int fd);
// Null if there is no memory for it.
std::unique_ptr<Wire> MakeTlsWire(int fd, ssl_ctx_st* context);

}  // namespace saccade::server
