#include "server/security/secret_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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

// Kubernetes mounts a Secret as a folder in memory whose files are links through "..data".
bool IsMountedByKubernetes(int fd, const std::string& path) {
  struct statfs system{};
  if (fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) return false;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  struct stat link{};
  return lstat(absl::StrCat(folder, "/..data").c_str(), &link) == 0 && S_ISLNK(link.st_mode);
}

absl::Status CheckMode(int fd, mode_t mode, absl::string_view subject, const std::string& path) {
  if ((mode & S_IRWXO) == 0 || IsMountedByKubernetes(fd, path)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(subject, " is open to other users: its mode is 0", absl::Hex(mode >> 6 & 7),
                   absl::Hex(mode >> 3 & 7), absl::Hex(mode & 7),
                   ", expected no rights for others; chmod 600 it, and give it to the daemon's user"));
}

absl::StatusOr<std::string> ReadFile(absl::string_view flag, const std::string& path, bool is_secret) {
  const std::string subject = absl::StrCat(flag, " ", path);
  // O_NONBLOCK: opening a FIFO must not block the daemon.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Unreadable(subject, errno);
  struct stat file{};
  absl::Status allowed = fstat(fd, &file) == 0 && S_ISREG(file.st_mode)
                             ? absl::OkStatus()
                             : absl::InvalidArgumentError(absl::StrCat(subject, " is not a regular file"));
  if (allowed.ok() && is_secret) allowed = CheckMode(fd, file.st_mode, subject, path);
  absl::StatusOr<std::string> text = allowed.ok() ? ReadAll(fd, subject) : allowed;
  close(fd);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadSecretFile(absl::string_view flag, const std::string& path) {
  return ReadFile(flag, path, true);
}

absl::StatusOr<std::string> ReadPublicFile(absl::string_view flag, const std::string& path) {
  return ReadFile(flag, path, false);
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
