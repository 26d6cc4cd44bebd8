#include "server/security/secret_files.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

absl::Status Unreadable(absl::string_view subject, int error) {
  return absl::InvalidArgumentError(absl::StrCat(subject, " cannot be read: ", std::strerror(error),
                                                 "; expected a file readable by this user"));
}

// Reads to the end of the file, or one byte more than is allowed.
absl::StatusOr<std::string> ReadAll(int fd, absl::string_view subject) {
  std::string text(kMaxSecretBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      Wipe(text);
      return Unreadable(subject, error);
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kMaxSecretBytes) {
    Wipe(text);
    return absl::InvalidArgumentError(
        absl::StrCat(subject, " is larger than ", kMaxSecretBytes, " bytes, the maximum"));
  }
  // Copied, so that a small file does not occupy a megabyte.
  std::string whole = text.substr(0, size);
  Wipe(text);
  return whole;
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(absl::string_view flag, const std::string& path) {
  const std::string subject = absl::StrCat(flag, " ", path);
  // O_NONBLOCK: opening a FIFO must not block the daemon.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Unreadable(subject, errno);
  struct stat file{};
  absl::StatusOr<std::string> text =
      fstat(fd, &file) == 0 && S_ISREG(file.st_mode)
          ? ReadAll(fd, subject)
          : absl::InvalidArgumentError(absl::StrCat(subject, " is not a regular file"));
  close(fd);
  return text;
}

void Wipe(std::string& secret) {
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

SecretFiles::SecretFiles(std::vector<std::string> paths) : paths_(std::move(paths)), change_(Stamps()) {}

std::vector<SecretFiles::Stamp> SecretFiles::Stamps() const {
  std::vector<Stamp> stamps;
  for (const std::string& path : paths_) {
    Stamp& stamp = stamps.emplace_back();
    struct stat file{};
    if (stat(path.c_str(), &file) != 0) continue;
    stamp = {.exists = true,
             .device = file.st_dev,
             .inode = file.st_ino,
             .size = file.st_size,
             .modified = {file.st_mtim.tv_sec, file.st_mtim.tv_nsec},
             .changed = {file.st_ctim.tv_sec, file.st_ctim.tv_nsec}};
  }
  return stamps;
}

bool SecretFiles::HaveChanged() { return change_.Look(Stamps()); }

void SecretFiles::ReadIfChanged(absl::FunctionRef<absl::Status()> read, absl::string_view message) {
  if (!HaveChanged()) return;
  const absl::Status done = read();
  if (done.ok()) {
    MarkRead();
    problem_.clear();
  } else if (problem_ != done.message()) {
    problem_ = std::string(done.message());
    Log(LogLevel::kWarning, message, {{"reason", problem_}});
  }
}

}  // namespace saccade::server
