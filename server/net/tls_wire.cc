#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "server/net/wire.h"

namespace saccade::server {
namespace {

using OwnedSsl = std::unique_ptr<SSL, decltype(&SSL_free)>;

// The bytes of one TLS record.
constexpr size_t kRecord = size_t{16} << 10;

// OpenSSL's own BIO of a socket writes without MSG_NOSIGNAL, so that a closed connection would end the daemon
// by SIGPIPE.
int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

// Reads of the socket that the running SSL_read() may still make. Otherwise it goes on as long as records
// without data come, such as changes of the key, which a client can send without end.
constexpr int kReadsAtOnce = 2;
thread_local int reads_left = std::numeric_limits<int>::max();

int ReadSocket(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  if (reads_left == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  --reads_left;
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

// Made once and never freed. Null if there is no memory.
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

class TlsWire final : public Wire {
 public:
  explicit TlsWire(OwnedSsl ssl) : ssl_(std::move(ssl)) {}

  int Handshake(Await* await) override {
    ERR_clear_error();
    reads_left = std::numeric_limits<int>::max();
    const int done = SSL_accept(ssl_.get());
    if (done == 1) return 0;
    met_plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
    *await = AwaitedAfter(done);
    return -1;
  }

  bool met_plain_http() const override { return met_plain_http_; }

  std::string_view alpn() const override {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

  ssize_t Receive(char* to, size_t size, Await* await) override {
    ERR_clear_error();
    reads_left = kReadsAtOnce;
    const int got =
        SSL_read(ssl_.get(), to, static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max())));
    reads_left = std::numeric_limits<int>::max();
    if (got > 0) return got;
    if (SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN) return 0;
    *await = AwaitedAfter(got);
    return -1;
  }

  bool has_received() const override { return SSL_has_pending(ssl_.get()) == 1; }

  ssize_t Send(absl::Span<const iovec> pieces, Await* await) override {
    const std::string_view record = RecordOf(pieces);
    ERR_clear_error();
    const int sent = SSL_write(ssl_.get(), record.data(), static_cast<int>(record.size()));
    if (sent > 0) return sent;
    *await = AwaitedAfter(sent);
    return -1;
  }

  void EndSending() override {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }

 private:
  Await AwaitedAfter(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ) return Await::kReadable;
    return error == SSL_ERROR_WANT_WRITE ? Await::kWritable : Await::kNothing;
  }

  // The bytes of the next record: small pieces share one. After a -1 they begin with the same bytes again,
  // though elsewhere in memory, which SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER allows.
  static std::string_view RecordOf(absl::Span<const iovec> pieces) {
    const std::string_view first(static_cast<const char*>(pieces[0].iov_base), pieces[0].iov_len);
    if (first.size() >= kRecord || pieces.size() == 1) return first.substr(0, kRecord);
    thread_local std::array<char, kRecord> record;
    size_t size = 0;
    for (const iovec& piece : pieces) {
      const size_t taken = std::min(piece.iov_len, record.size() - size);
      std::memcpy(&record[size], piece.iov_base, taken);
      size += taken;
      if (size == record.size()) break;
    }
    return {record.data(), size};
  }

  const OwnedSsl ssl_;
  bool met_plain_http_ = false;
};

}  // namespace

std::unique_ptr<Wire> MakeTlsWire(int fd, ssl_ctx_st* context) {
  const BIO_METHOD* const method = SocketMethod();
  BIO* const socket = method == nullptr ? nullptr : BIO_new(method);
  if (socket == nullptr) return nullptr;
  // The SSL keeps the context as long as it needs it.
  OwnedSsl ssl(context == nullptr ? nullptr : SSL_new(context), &SSL_free);
  if (ssl == nullptr) {
    BIO_free(socket);
    return nullptr;
  }
  BIO_set_data(socket, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(socket, 1);
  SSL_set_bio(ssl.get(), socket, socket);
  SSL_set_options(ssl.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_set_mode(ssl.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
  // One system call takes a record's head and body, and often several records.
  SSL_set_read_ahead(ssl.get(), 1);
  return std::make_unique<TlsWire>(std::move(ssl));
}

}  // namespace saccade::server
