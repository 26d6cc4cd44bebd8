#include "client/bench/bare_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "client/bench/bare_server.h"

namespace saccade::client {
namespace {

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, at, size);
    if (written <= 0) return false;
    at += written;
    size -= written;
  }
  return true;
}

bool ReadAll(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got <= 0) return false;
    at += got;
    size -= got;
  }
  return true;
}

bool WriteString(int fd, const std::string& text) {
  const uint64_t size = text.size();
  return WriteAll(fd, &size, sizeof(size)) && WriteAll(fd, text.data(), size);
}

std::optional<std::string> ReadString(int fd) {
  uint64_t size = 0;
  if (!ReadAll(fd, &size, sizeof(size))) return std::nullopt;
  std::string text(size, '\0');
  if (!ReadAll(fd, text.data(), size)) return std::nullopt;
  return text;
}

// The child process: reads the two responses, serves, sends the address, and stays until the parent closes
// the pipe.
void Serve(int from_parent, int to_parent) {
  const auto predict_answer = ReadString(from_parent);
  const auto live_answer = ReadString(from_parent);
  if (!predict_answer || !live_answer) return;
  const BareServer server(*predict_answer, *live_answer);
  if (!WriteString(to_parent, server.url())) return;
  char hung_up = 0;
  ReadAll(from_parent, &hung_up, 1);
}

}  // namespace

BareProcess::BareProcess() {
  int down[2];
  int up[2];
  if (pipe(down) != 0) return;
  if (pipe(up) != 0) {
    close(down[0]);
    close(down[1]);
    return;
  }
  child_ = fork();
  if (child_ == 0) {
    close(down[1]);
    close(up[0]);
    Serve(down[0], up[1]);
    _exit(0);
  }
  close(down[0]);
  close(up[1]);
  to_child_ = down[1];
  from_child_ = up[0];
}

BareProcess::~BareProcess() {
  if (to_child_ >= 0) close(to_child_);
  if (from_child_ >= 0) close(from_child_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

absl::StatusOr<std::string> BareProcess::Start(const std::string& predict_answer,
                                               const std::string& live_answer) {
  if (child_ <= 0) return absl::InternalError("could not fork the bare server's process");
  if (WriteString(to_child_, predict_answer) && WriteString(to_child_, live_answer)) {
    if (auto url = ReadString(from_child_)) return *std::move(url);
  }
  return absl::InternalError("the bare server's process ended before it served");
}

}  // namespace saccade::client
