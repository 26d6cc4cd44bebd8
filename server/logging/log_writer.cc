#include "server/logging/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace saccade::server {
namespace {

// A pipe that poll() reports as writable takes this many bytes without blocking.
constexpr size_t kMaxWrite = 4096;

ssize_t WriteSome(int fd, const char* bytes, size_t size) {
  size = std::min(size, kMaxWrite);
  // A socket that has room for fewer bytes than these would block in write().
  const ssize_t sent = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, size) : sent;
}

// The thread must not take signals meant for the main thread. SIGPIPE is blocked as well: a reader that has
// gone is an error of write().
void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

LogWriter::LogWriter(const Options& options)
    : options_(options), end_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  // The new thread inherits the mask, so that no signal finds it with another one.
  BlockAllSignals();
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  eventfd_write(end_fd_, 1);
  thread_.join();
  close(end_fd_);
}

void LogWriter::Write(std::string line) {
  absl::MutexLock lock(&mutex_);
  const size_t size = line.size();
  if (size > options_.max_queued_bytes - queued_bytes_) {
    ++losses_.queue_full;
    return;
  }
  // First, because a line for which there is no memory must not count.
  lines_.push_back(std::move(line));
  queued_bytes_ += size;
  ++accepted_;
}

bool LogWriter::Flush(absl::Duration max) {
  absl::MutexLock lock(&mutex_);
  const uint64_t last = accepted_;
  const auto written = [this, last]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ended_ >= last; };
  return mutex_.AwaitWithTimeout(absl::Condition(&written), max);
}

LogLosses LogWriter::losses() const {
  absl::MutexLock lock(&mutex_);
  return losses_;
}

void LogWriter::Run() {
  pthread_setname_np(pthread_self(), "log");
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ending_ || !lines_.empty(); };
  while (true) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (ending_) return;
      line = std::move(lines_.front());
      lines_.pop_front();
    }
    const bool written = WriteLine(line);
    absl::MutexLock lock(&mutex_);
    queued_bytes_ -= line.size();
    ++ended_;
    if (!written) ++losses_.write_failed;
  }
}

bool LogWriter::WriteLine(const std::string& line) {
  // A line that was cut off by a full disk must not run into this one.
  if (within_line_ && !WriteAll("\n")) return false;
  within_line_ = false;
  return WriteAll(line);
}

// Allocates nothing, because an exception on this thread would end the process.
bool LogWriter::WriteAll(absl::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    if (!AwaitRoom()) return false;
    const ssize_t wrote = WriteSome(options_.fd, text.data() + done, text.size() - done);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (wrote <= 0) {
      if (done > 0) within_line_ = true;
      return false;
    }
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool LogWriter::AwaitRoom() const {
  pollfd waits[] = {{.fd = options_.fd, .events = POLLOUT, .revents = 0},
                    {.fd = end_fd_, .events = POLLIN, .revents = 0}};
  while (poll(waits, 2, -1) < 0 && errno == EINTR) {
  }
  return waits[1].revents == 0;
}

}  // namespace saccade::server
