#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "server/http/wire.h"

namespace saccade::server {
namespace {

// What stands in one call of the system, small enough for any of them.
constexpr size_t kMaxPieces = 64;
using Vectors = std::array<iovec, kMaxPieces>;

// The first of what is left, without the `skipped` bytes of the very first.
size_t Gather(absl::Span<const absl::string_view> pieces, size_t skipped, Vectors& to) {
  const size_t count = std::min(pieces.size(), to.size());
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view piece = pieces[i].substr(i == 0 ? skipped : 0);
    to[i] = {const_cast<char*>(piece.data()), piece.size()};
  }
  return count;
}

// Whether the kernel asks to come again, rather than telling that the connection is lost.
class Plain final : public Wire {
 public:
  explicit Plain(int fd) : fd_(fd) {}

  int Greet(short* /*await*/) override { return 0; }

  ssize_t Receive(char* to, size_t size, short* await) override {
    return Done(recv(fd_, to, size, MSG_DONTWAIT), POLLIN, await);
  }

  ssize_t Peek(short* await) override {
    char first = 0;
    return Done(recv(fd_, &first, 1, MSG_PEEK | MSG_DONTWAIT), POLLIN, await);
  }

  ssize_t Send(absl::Span<const absl::string_view> pieces, size_t skipped, short* await) override {
    Vectors vectors;
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = Gather(pieces, skipped, vectors);
    return Done(sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT, await);
  }

  void EndSending() override {}

 private:
  static ssize_t Done(ssize_t moved, short events, short* await) {
    *await = moved < 0 && IsTransient(errno) ? events : short{0};
    return moved;
  }

  const int fd_;
};

}  // namespace

std::unique_ptr<Wire> PlainWire(int fd) { return std::make_unique<Plain>(fd); }

}  // namespace saccade::server
