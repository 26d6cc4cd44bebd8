// A blocking client that can misbehave, for tests: a plain socket, usually to 127.0.0.1.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saccade::server {

// Calls give up after 20 seconds, so that a server that does not answer fails the test instead of hanging it.
class NetClient {
 public:
  // `receive_buffer`: bytes that the system buffers for this client; 0: as many as it likes.
  explicit NetClient(int port, int receive_buffer = 0) : NetClient() {
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    Connect(port);
  }
  // Not connected yet.
  NetClient() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }
  ~NetClient() { close(fd_); }
  NetClient(const NetClient&) = delete;
  NetClient& operator=(const NetClient&) = delete;

  // `ip` is an IPv4 address in the network's byte order.
  void Connect(int port, in_addr_t ip = htonl(INADDR_LOOPBACK)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = ip;
    connected_ = fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  // Connects from an address of this machine, in the network's byte order.
  bool Bind(in_addr_t ip) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ip;
    return bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  int fd() const { return fd_; }
  bool connected() const { return connected_; }

  // False if the connection broke first.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void EndSending() const { shutdown(fd_, SHUT_WR); }

  // Closes by a reset instead of an orderly end.
  void ResetWhenClosed() const {
    const linger immediately{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &immediately, sizeof(immediately));
  }

  // `size` bytes, or less if the connection ended.
  std::string Read(size_t size) const {
    std::string all;
    std::array<char, 65536> buffer;
    while (all.size() < size) {
      const ssize_t got = recv(fd_, buffer.data(), std::min(buffer.size(), size - all.size()), 0);
      if (got <= 0) break;
      all.append(buffer.data(), static_cast<size_t>(got));
    }
    return all;
  }
  // Everything until the connection ends.
  std::string ReadToEnd() const { return Read(SIZE_MAX); }

 private:
  const int fd_;
  bool connected_ = false;
};

}  // namespace saccade::server
