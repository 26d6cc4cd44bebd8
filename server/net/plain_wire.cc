#include <sys/socket.h>

#include <cerrno>

#include "server/net/wire.h"

namespace saccade::server {
namespace {

class PlainWire final : public Wire {
 public:
  explicit PlainWire(int fd) : fd_(fd) {}

  int Handshake(Await* /*await*/) override { return 0; }

  ssize_t Receive(char* to, size_t size, Await* await) override {
    const ssize_t got = recv(fd_, to, size, MSG_DONTWAIT);
    if (got < 0) *await = IsTransient(errno) ? Await::kReadable : Await::kNothing;
    return got;
  }

  ssize_t Send(absl::Span<const iovec> pieces, Await* await) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) *await = IsTransient(errno) ? Await::kWritable : Await::kNothing;
    return sent;
  }

 private:
  const int fd_;
};

}  // namespace

std::unique_ptr<Wire> MakePlainWire(int fd) { return std::make_unique<PlainWire>(fd); }

}  // namespace saccade::server
