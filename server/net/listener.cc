#include "server/net/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Connections that the system accepts before the daemon does.
constexpr int kBacklog = 1024;
// A silent client is asked after so many seconds, and every so many again; its connection ends after so many
// questions without an answer.
constexpr int kKeepAliveIdle = 60;
constexpr int kKeepAliveInterval = 10;
constexpr int kKeepAliveProbes = 3;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status OpenError(int error, const std::string& host, int port, const std::string& flag) {
  const std::string what = absl::StrCat("port ", port, " of ", flag);
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(what, " is in use by another process; pass ", flag, " 0 for a free one"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          what, " may not be opened by this user; pass a port above 1023, or ", flag, " 0 for a free one"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          "'", host, "' is no address of this machine; listen on 0.0.0.0 for all of them, or on 127.0.0.1"));
    default:
      return absl::ErrnoToStatus(error, absl::StrCat("cannot listen on ", host, ", ", what));
  }
}

// The socket, or -1 with errno set.
int OpenSocket(const addrinfo& address) {
  const int fd =
      socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (fd < 0) return -1;
  // A daemon that has just ended leaves connections behind, which must not keep the port in use. SO_REUSEPORT
  // would share the port with another process, so it is not set.
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

absl::StatusOr<Listener> Listener::Open(const std::string& host, int port, const std::string& port_flag) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(port_flag, " is ", port, ", expected 1 to 65535, or 0 for a free port"));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on '", host, "': ", gai_strerror(code),
                                                   "; expected an address, as in 0.0.0.0"));
  }
  const Addresses addresses(found, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (const int fd = OpenSocket(*address); fd >= 0) return Listener(fd, PortOf(fd));
    error = errno;
  }
  return OpenError(error, host, port, port_flag);
}

Listener::Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

int Listener::Accept(sockaddr_storage* peer) {
  socklen_t size = sizeof(*peer);
  const int fd = accept4(fd_, reinterpret_cast<sockaddr*>(peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  // Output is written as a whole at the end of a round, so it should leave without waiting for
  // acknowledgements.
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  // A client may vanish without a word, and a call that has nothing to send would keep its place for ever.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveIdle, sizeof(kKeepAliveIdle));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveInterval, sizeof(kKeepAliveInterval));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(kKeepAliveProbes));
  return fd;
}

}  // namespace saccade::server
