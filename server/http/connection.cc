#include "server/http/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace saccade::server {
namespace {

constexpr size_t kLingerBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kLingerTime(500);

auto Steady(absl::Duration duration) { return absl::ToChronoMilliseconds(duration); }

std::unique_ptr<Wire> WireOf(int fd, const HttpServerOptions& options) {
  return options.tls ? TlsWire(fd, options.tls()) : PlainWire(fd);
}

}  // namespace

Connection::Connection(int fd, const HttpServerOptions& options)
    : fd_(fd),
      done_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      options_(options),
      wire_(WireOf(fd, options)) {
  // Out of descriptors: nobody could wait for anything here.
  if (done_fd_ < 0) Interrupt();
}

Connection::~Connection() {
  close(fd_);
  if (done_fd_ >= 0) close(done_fd_);
}

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

Connection::Clock::time_point Connection::Deadline(Clock::time_point begin, absl::Duration timeout,
                                                   size_t moved) const {
  return begin + Steady(timeout + absl::Seconds(static_cast<double>(moved) /
                                                static_cast<double>(options_.min_bytes_per_second)));
}

ssize_t Connection::Receive(char* to, size_t size, Clock::time_point deadline) {
  for (;;) {
    short await = 0;
    const ssize_t got = wire_->Receive(to, size, &await);
    if (got >= 0 || await == 0) return got;
    if (!AwaitReady(await, deadline)) break;
  }
  errno = ETIMEDOUT;
  return -1;
}

ssize_t Connection::ReceiveInTime(char* to, size_t size) {
  const ssize_t got = Receive(to, size, Deadline(read_begin_, options_.read_timeout, received_));
  if (got <= 0) broken_ = true;
  if (got > 0) received_ += static_cast<size_t>(got);
  return got;
}

Greeting Connection::Greet() {
  if (done_fd_ < 0 || wire_ == nullptr) return Greeting::kFailed;
  const auto deadline = Clock::now() + Steady(options_.handshake_timeout);
  for (;;) {
    short await = 0;
    if (wire_->Greet(&await) == 0) return Greeting::kDone;
    if (await != 0 && AwaitReady(await, deadline)) continue;
    if (!wire_->met_plain_http()) return Greeting::kFailed;
    wire_ = PlainWire(fd_);
    return Greeting::kPlainHttp;
  }
}

bool Connection::AwaitRequest() {
  if (!Fetched().empty()) return true;
  const auto deadline = Clock::now() + Steady(options_.idle_timeout);
  for (;;) {
    short await = 0;
    const ssize_t got = wire_->Peek(&await);
    if (got >= 0 || await == 0) return got == 1;
    if (!AwaitReady(await, deadline)) return false;
  }
}

HeadResult Connection::ReadHead() {
  DropHead();
  read_begin_ = Clock::now();
  received_ = 0;
  writing_ = false;
  constexpr absl::string_view kEnd = "\r\n\r\n";
  size_t searched = 0;
  for (;;) {
    const size_t end = ahead_.find(kEnd.data(), searched, kEnd.size());
    if (end != std::string::npos && end + kEnd.size() <= options_.max_head_bytes) {
      head_size_ = end + kEnd.size();
      return HeadResult::kComplete;
    }
    if (ahead_.size() >= options_.max_head_bytes) return HeadResult::kTooLarge;
    searched = ahead_.size() < kEnd.size() ? 0 : ahead_.size() - kEnd.size() + 1;
    const ssize_t got = Fetch(4096);
    if (got < 0 && errno == ETIMEDOUT) return HeadResult::kTimedOut;
    if (got <= 0) return HeadResult::kClosed;
  }
}

void Connection::DropHead() {
  ahead_.erase(0, dropped_ + head_size_);
  head_size_ = 0;
  dropped_ = 0;
}

ssize_t Connection::Fetch(size_t max) {
  ahead_.erase(0, dropped_);
  dropped_ = 0;
  const size_t had = ahead_.size();
  ahead_.resize(had + max);
  const ssize_t got = ReceiveInTime(&ahead_[had], max);
  ahead_.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got;
}

void Connection::Drop(size_t size) {
  dropped_ += size;
  if (dropped_ < ahead_.size()) return;
  ahead_.clear();
  dropped_ = 0;
}

ssize_t Connection::Read(char* to, size_t size) {
  if (Fetched().empty()) return ReceiveInTime(to, size);
  const size_t taken = Fetched().copy(to, size);
  Drop(taken);
  return static_cast<ssize_t>(taken);
}

bool Connection::Write(absl::Span<const absl::string_view> pieces) {
  if (!writing_) {
    write_begin_ = Clock::now();
    sent_ = 0;
  }
  writing_ = true;
  size_t skipped = 0;
  while (!pieces.empty()) {
    short await = 0;
    const ssize_t sent = wire_->Send(pieces, skipped, &await);
    if (sent < 0) {
      if (await != 0 && AwaitReady(await, Deadline(write_begin_, options_.write_timeout, sent_))) continue;
      broken_ = true;
      return false;
    }
    sent_ += static_cast<size_t>(sent);
    skipped += static_cast<size_t>(sent);
    while (!pieces.empty() && skipped >= pieces[0].size()) {
      skipped -= pieces[0].size();
      pieces.remove_prefix(1);
    }
  }
  return true;
}

void Connection::Linger() {
  if (!broken_) wire_->EndSending();
  shutdown(fd_, SHUT_WR);
  const auto deadline = Clock::now() + kLingerTime;
  std::array<char, 4096> buffer;
  for (size_t taken = 0; taken < kLingerBytes;) {
    const ssize_t got = Receive(buffer.data(), buffer.size(), deadline);
    if (got <= 0) return;
    taken += static_cast<size_t>(got);
  }
}

void Connection::Interrupt() {
  interrupted_ = true;
  shutdown(fd_, SHUT_RD);
}

std::string Connection::Address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const void* number = nullptr;
  if (address.ss_family == AF_INET) number = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) number = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (number == nullptr || inet_ntop(address.ss_family, number, text.data(), text.size()) == nullptr)
    return "";
  return text.data();
}

void Connection::AwaitDone(absl::FunctionRef<void()> gone) {
  std::array<pollfd, 2> waiting = {{{done_fd_, POLLIN, 0}, {fd_, POLLRDHUP, 0}}};
  for (;;) {
    const int ready = poll(waiting.data(), waiting.size(), -1);
    if (ready <= 0) continue;
    uint64_t count = 0;
    if (waiting[0].revents != 0 && read(done_fd_, &count, sizeof(count)) == sizeof(count)) return;
    if (waiting[1].revents == 0) continue;
    // Interrupt looks the same from here, and lets the request in hand end.
    waiting[1].fd = -1;
    if (!interrupted_) gone();
  }
}

void Connection::Done() {
  const uint64_t one = 1;
  // It fails only if AwaitDone could not return either.
  [[maybe_unused]] const ssize_t written = write(done_fd_, &one, sizeof(one));
}

}  // namespace saccade::server
