#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include "server/http/wire.h"

namespace saccade::server {
namespace {

// One record of TLS.
constexpr size_t kMaxSent = size_t{16} << 10;

// OpenSSL's own socket would block, and end the daemon with SIGPIPE where a client has gone.
int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int ReadSocket(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = recv(SocketOf(bio), to, static_cast<size_t>(size), MSG_DONTWAIT);
  if (got < 0 && IsTransient(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

int WriteSocket(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = send(SocketOf(bio), from, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && IsTransient(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

long ControlSocket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Made once, and there until the program ends; null without memory.
const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (made == nullptr) return made;
    BIO_meth_set_read(made, &ReadSocket);
    BIO_meth_set_write(made, &WriteSocket);
    BIO_meth_set_ctrl(made, &ControlSocket);
    return made;
  }();
  return method;
}

class Tls final : public Wire {
 public:
  explicit Tls(SSL* ssl) : ssl_(ssl, &SSL_free) {}

  int Greet(short* await) override {
    ERR_clear_error();
    const int done = SSL_accept(ssl_.get());
    if (done == 1) return 0;
    met_plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
    *await = Awaited(done);
    return -1;
  }

  bool met_plain_http() const override { return met_plain_http_; }

  ssize_t Receive(char* to, size_t size, short* await) override {
    ERR_clear_error();
    return Moved(SSL_read(ssl_.get(), to, Bounded(size)), await);
  }

  ssize_t Peek(short* await) override {
    char first = 0;
    ERR_clear_error();
    return Moved(SSL_peek(ssl_.get(), &first, 1), await);
  }

  ssize_t Send(absl::Span<const absl::string_view> pieces, size_t skipped, short* await) override {
    // The same again after a -1, as OpenSSL has the record that it began already.
    const absl::string_view next = Next(pieces, skipped);
    ERR_clear_error();
    const int sent = SSL_write(ssl_.get(), next.data(), static_cast<int>(next.size()));
    if (sent > 0) return sent;
    *await = Awaited(sent);
    return -1;
  }

  void EndSending() override {
    ERR_clear_error();
    // It is lost where the socket takes no more, as any word of farewell may be.
    SSL_shutdown(ssl_.get());
  }

 private:
  static int Bounded(size_t size) {
    return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
  }

  short Awaited(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ) return POLLIN;
    return error == SSL_ERROR_WANT_WRITE ? short{POLLOUT} : short{0};
  }

  ssize_t Moved(int result, short* await) {
    *await = 0;
    if (result > 0) return result;
    // Whether the client said so or only went: a request or an answer tells its own length.
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    *await = Awaited(result);
    if (*await == 0) errno = ECONNRESET;
    return -1;
  }

  // Small pieces share a record: a head does not go alone.
  absl::string_view Next(absl::Span<const absl::string_view> pieces, size_t skipped) {
    const absl::string_view first = pieces[0].substr(skipped);
    if (first.size() >= record_.size() || pieces.size() == 1) return first.substr(0, record_.size());
    size_t size = 0;
    for (size_t i = 0; i < pieces.size() && size < record_.size(); ++i) {
      const absl::string_view piece = i == 0 ? first : pieces[i];
      size += piece.copy(&record_[size], record_.size() - size);
    }
    return {record_.data(), size};
  }

  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::array<char, kMaxSent> record_;
  bool met_plain_http_ = false;
};

}  // namespace

std::unique_ptr<Wire> TlsWire(int fd, const std::shared_ptr<ssl_ctx_st>& context) {
  const BIO_METHOD* const method = SocketMethod();
  BIO* const socket = method == nullptr ? nullptr : BIO_new(method);
  // It keeps the context as long as it needs it.
  SSL* const ssl = socket == nullptr || context == nullptr ? nullptr : SSL_new(context.get());
  if (ssl == nullptr) {
    BIO_free(socket);
    return nullptr;
  }
  BIO_set_data(socket, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(socket, 1);
  SSL_set_bio(ssl, socket, socket);
  return std::make_unique<Tls>(ssl);
}

}  // namespace saccade::server
