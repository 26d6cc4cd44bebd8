#include "server/http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace saccade::server {
namespace {

constexpr size_t kLingerBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kLingerTime(500);

auto Steady(absl::Duration duration) { return absl::ToChronoMilliseconds(duration); }

}  // namespace

Connection::~Connection() { close(fd_); }

bool Connection::AwaitReady(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{fd_, events, 0};
    // What is there already is taken even if this thread comes late.
    const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<long>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (left <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

ssize_t Connection::Receive(char* to, size_t size, Clock::time_point deadline) {
  while (AwaitReady(POLLIN, deadline)) {
    const ssize_t got = recv(fd_, to, size, MSG_DONTWAIT);
    if (got >= 0) return got;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return -1;
  }
  errno = ETIMEDOUT;
  return -1;
}

bool Connection::AwaitRequest() {
  if (!ahead_.empty()) return true;
  if (!AwaitReady(POLLIN, Clock::now() + Steady(options_.idle_timeout))) return false;
  char first = 0;
  return recv(fd_, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

HeadResult Connection::ReadHead() {
  read_deadline_ = Clock::now() + Steady(options_.read_timeout);
  writing_ = false;
  constexpr absl::string_view kEnd = "\r\n\r\n";
  size_t searched = 0;
  std::array<char, 4096> buffer;
  for (;;) {
    const size_t end = ahead_.find(kEnd.data(), searched, kEnd.size());
    if (end != std::string::npos && end + kEnd.size() <= options_.max_head_bytes)
      return HeadResult::kComplete;
    if (ahead_.size() >= options_.max_head_bytes) return HeadResult::kTooLarge;
    searched = ahead_.size() < kEnd.size() ? 0 : ahead_.size() - kEnd.size() + 1;
    const ssize_t got = Receive(buffer.data(), buffer.size(), read_deadline_);
    if (got < 0 && errno == ETIMEDOUT) return HeadResult::kTimedOut;
    if (got <= 0) return HeadResult::kClosed;
    ahead_.append(buffer.data(), static_cast<size_t>(got));
  }
}

ssize_t Connection::Read(char* to, size_t size) {
  if (!ahead_.empty()) {
    const size_t taken = ahead_.copy(to, size);
    ahead_.erase(0, taken);
    return static_cast<ssize_t>(taken);
  }
  const ssize_t got = Receive(to, size, read_deadline_);
  if (got <= 0) broken_ = true;
  return got;
}

bool Connection::Write(absl::string_view bytes) {
  if (!writing_) write_deadline_ = Clock::now() + Steady(options_.write_timeout);
  writing_ = true;
  while (!bytes.empty()) {
    if (!AwaitReady(POLLOUT, write_deadline_)) break;
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) break;
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  if (!bytes.empty()) broken_ = true;
  return bytes.empty();
}

void Connection::Linger() {
  shutdown(fd_, SHUT_WR);
  const auto deadline = Clock::now() + kLingerTime;
  std::array<char, 4096> buffer;
  for (size_t taken = 0; taken < kLingerBytes;) {
    const ssize_t got = Receive(buffer.data(), buffer.size(), deadline);
    if (got <= 0) return;
    taken += static_cast<size_t>(got);
  }
}

void Connection::Interrupt() { shutdown(fd_, SHUT_RD); }

}  // namespace saccade::server
