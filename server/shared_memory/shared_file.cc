#include "server/shared_memory/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxKeyBytes = 255;

std::string KeySubject(absl::string_view key) {
  return absl::StrCat("key '", absl::CHexEscape(key.substr(0, kMaxKeyBytes)), "'");
}

absl::Status CheckName(absl::string_view name, absl::string_view key) {
  const bool plain = !name.empty() && name.size() <= kMaxKeyBytes && name != "." && name != ".." &&
                     !absl::StrContains(name, '/') && !absl::StrContains(name, '\0');
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      KeySubject(key), ": expected the name of a file in /dev/shm, as shm_open takes it: '/frames'"));
}

// Whether the file's owner gave the daemon's user access, regardless of what a privileged daemon could open.
bool IsForUs(const struct stat& file) {
  constexpr mode_t kGroup = S_IRGRP | S_IWGRP;
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  return file.st_uid == geteuid() || (file.st_gid == getegid() && (file.st_mode & kGroup) == kGroup) ||
         (file.st_mode & kOthers) == kOthers;
}

absl::Status CheckFile(const struct stat& file, absl::string_view key) {
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(KeySubject(key), ": is not a regular file; create the shared memory with shm_open"));
  }
  if (!IsForUs(file)) {
    return absl::InvalidArgumentError(
        absl::StrCat(KeySubject(key), ": belongs to user ", file.st_uid, ", and saccaded runs as ", geteuid(),
                     "; run both as the same user, or make it readable and writable for others"));
  }
  return absl::OkStatus();
}

absl::Status FromErrno(int error, absl::string_view key) {
  if (error == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat(KeySubject(key), ": this shared memory does not exist on the server's machine"));
  }
  const char* const why = error == ELOOP ? "it is a symbolic link" : std::strerror(error);
  return absl::InvalidArgumentError(absl::StrCat(KeySubject(key), ": cannot be opened: ", why));
}

absl::Status Truncated() {
  return absl::FailedPreconditionError(
      "the shared memory is smaller than when it was registered; keep its size, or register it again");
}

}  // namespace

absl::StatusOr<SharedFile> SharedFile::Open(const std::string& folder, const std::string& key) {
  const std::string name(absl::StripPrefix(key, "/"));
  if (absl::Status plain = CheckName(name, key); !plain.ok()) return plain;
  // O_NONBLOCK: opening a FIFO must not wait for its other end.
  const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  SharedFile file(open(absl::StrCat(folder, "/", name).c_str(), flags));
  if (file.descriptor_ < 0) return FromErrno(errno, key);
  struct stat found{};
  if (fstat(file.descriptor_, &found) != 0) return FromErrno(errno, key);
  if (absl::Status fit = CheckFile(found, key); !fit.ok()) return fit;
  return file;
}

SharedFile::SharedFile(SharedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<uint64_t> SharedFile::Size() const {
  struct stat found{};
  if (fstat(descriptor_, &found) != 0) {
    return absl::InternalError(absl::StrCat("cannot read the size of shared memory: ", std::strerror(errno)));
  }
  return static_cast<uint64_t>(found.st_size);
}

absl::Status SharedFile::Read(uint64_t offset, size_t size, char* to) const {
  for (size_t done = 0; done < size;) {
    const ssize_t now = pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0)
      return absl::InternalError(absl::StrCat("cannot read shared memory: ", std::strerror(errno)));
    if (now == 0) return Truncated();
    done += static_cast<size_t>(now);
  }
  return absl::OkStatus();
}

absl::Status SharedFile::Write(uint64_t offset, absl::string_view bytes) const {
  // pwrite would extend a file that was truncated.
  const auto size = Size();
  if (!size.ok()) return size.status();
  if (bytes.size() > *size || offset > *size - bytes.size()) return Truncated();
  while (!bytes.empty()) {
    const ssize_t now = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0)
      return absl::InternalError(absl::StrCat("cannot write shared memory: ", std::strerror(errno)));
    offset += static_cast<uint64_t>(now);
    bytes.remove_prefix(static_cast<size_t>(now));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
