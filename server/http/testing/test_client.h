// A client that can misbehave, for tests: a plain socket to 127.0.0.1.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace saccade::server {

class TestClient {
 public:
  explicit TestClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    // A server that forgets to answer fails the test instead of hanging it.
    const timeval limit{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestClient() { close(fd_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }

  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  void EndSending() const { shutdown(fd_, SHUT_WR); }

  // One answer with a Content-Length, or what came before the connection ended.
  std::string ReadAnswer() {
    for (;;) {
      const size_t head = ahead_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t at = ahead_.find("\r\nContent-Length: ");
        const size_t length = at < head ? std::strtoul(ahead_.c_str() + at + 18, nullptr, 10) : 0;
        if (ahead_.size() >= head + 4 + length) return Take(head + 4 + length);
      }
      if (!Receive()) return Take(ahead_.size());
    }
  }

  // Everything up to the connection's end.
  std::string ReadToEnd() {
    while (Receive()) {
    }
    return Take(ahead_.size());
  }

 private:
  bool Receive() {
    char buffer[4096];
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got > 0) ahead_.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }

  std::string Take(size_t size) {
    std::string taken = ahead_.substr(0, size);
    ahead_.erase(0, size);
    return taken;
  }

  int fd_;
  bool connected_ = false;
  std::string ahead_;
};

}  // namespace saccade::server
