#include "server/capture/capture_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/capture/record_format.h"

namespace saccade::server {
namespace {

constexpr char kPrefix[] = "capture-";
constexpr char kSuffix[] = ".saccade";
constexpr char kLock[] = ".lock";

std::string Why(int error) { return std::strerror(error); }

bool IsSegment(absl::string_view name) {
  return absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kSuffix);
}

// False if the file system does not take all of it; errno says why.
bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CaptureFolder>> CaptureFolder::Open(Options options, absl::Time now) {
  std::unique_ptr<CaptureFolder> folder(new CaptureFolder(std::move(options)));
  const std::string& path = folder->options_.path;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("--capture ", path, " cannot be created: ", Why(errno),
                     "; name a folder in one that exists and can be written"));
  }
  folder->folder_fd_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder->folder_fd_ < 0)
    return absl::FailedPreconditionError(
        absl::StrCat("--capture ", path, " cannot be opened: ", Why(errno), "; expected a folder"));
  if (absl::Status locked = folder->Lock(); !locked.ok()) return locked;
  if (absl::Status listed = folder->List(); !listed.ok()) return listed;
  folder->Sweep(now);
  return folder;
}

CaptureFolder::~CaptureFolder() {
  CloseSegment();
  if (lock_fd_ >= 0) close(lock_fd_);
  if (folder_fd_ >= 0) close(folder_fd_);
}

absl::Status CaptureFolder::Lock() {
  lock_fd_ = openat(folder_fd_, kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_fd_ < 0) {
    return absl::FailedPreconditionError(absl::StrCat("--capture ", options_.path, " cannot be written: ",
                                                      Why(errno), "; let the daemon's user write there"));
  }
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--capture ", options_.path, " is written by another daemon; give each a folder of its own"));
}

absl::Status CaptureFolder::List() {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(options_.path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    struct stat facts = {};
    if (!IsSegment(name) || fstatat(folder_fd_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode))
      continue;
    segments_.push_back({name, facts.st_size, absl::TimeFromTimespec(facts.st_mtim)});
    bytes_ += facts.st_size;
  }
  if (error)
    return absl::FailedPreconditionError(
        absl::StrCat("--capture ", options_.path, " cannot be listed: ", error.message()));
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment& a, const Segment& b) { return a.name < b.name; });
  return absl::OkStatus();
}

absl::Status CaptureFolder::StartSegment(absl::Time now) {
  std::string name;
  // Names have microseconds; a clock that was set back may meet a name that exists.
  for (int number = 0; segment_fd_ < 0; ++number) {
    name = absl::StrCat(kPrefix, absl::FormatTime("%Y%m%d%ET%H%M%E6S", now, absl::UTCTimeZone()),
                        absl::StrFormat("-%03d", number), kSuffix);
    segment_fd_ =
        openat(folder_fd_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (segment_fd_ < 0 && (errno != EEXIST || number == 999))
      return absl::UnavailableError(absl::StrCat(name, " cannot be created: ", Why(errno)));
  }
  if (!WriteAll(segment_fd_, kSegmentMagic)) {
    const int error = errno;
    close(std::exchange(segment_fd_, -1));
    unlinkat(folder_fd_, name.c_str(), 0);
    return absl::UnavailableError(absl::StrCat(name, " cannot be written: ", Why(error)));
  }
  segment_started_ = now;
  segments_.push_back({name, static_cast<int64_t>(kSegmentMagic.size()), now});
  bytes_ += segments_.back().bytes;
  return absl::OkStatus();
}

void CaptureFolder::CloseSegment() {
  if (segment_fd_ >= 0) close(std::exchange(segment_fd_, -1));
}

void CaptureFolder::DeleteOldest() {
  if (segments_.size() == 1) CloseSegment();
  // A file that cannot be deleted was deleted by somebody else, or the folder is read-only by now, which the
  // next write says.
  unlinkat(folder_fd_, segments_.front().name.c_str(), 0);
  bytes_ -= segments_.front().bytes;
  segments_.pop_front();
}

absl::Status CaptureFolder::Write(absl::string_view frame, absl::Time now) {
  const auto size = static_cast<int64_t>(frame.size());
  const auto head = static_cast<int64_t>(kSegmentMagic.size());
  if (size + head > options_.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a call takes ", size, " bytes, more than --capture-max-bytes"));
  }
  const bool full = segment_fd_ >= 0 && segments_.back().bytes + size > options_.segment_bytes;
  if (full || now - segment_started_ >= options_.segment_age) CloseSegment();
  while (!segments_.empty() && bytes_ + size + head > options_.max_bytes) DeleteOldest();
  if (segment_fd_ < 0) {
    if (absl::Status started = StartSegment(now); !started.ok()) return started;
  }
  Segment& current = segments_.back();
  if (WriteAll(segment_fd_, frame)) {
    current.bytes += size;
    current.written = now;
    bytes_ += size;
    return absl::OkStatus();
  }
  const int error = errno;
  // Frames after half a frame could not be read. If this fails too, readers lose what was cut and nothing
  // else, because the next frame goes to another segment.
  static_cast<void>(ftruncate(segment_fd_, current.bytes) == 0);
  CloseSegment();
  return absl::UnavailableError(absl::StrCat(current.name, " cannot be written: ", Why(error)));
}

void CaptureFolder::Sweep(absl::Time now) {
  if (segment_fd_ >= 0 && now - segment_started_ >= options_.segment_age) CloseSegment();
  const bool writing = segment_fd_ >= 0;
  while (segments_.size() > (writing ? 1 : 0) && now - segments_.front().written > options_.max_age)
    DeleteOldest();
  while (segments_.size() > (writing ? 1 : 0) && bytes_ > options_.max_bytes) DeleteOldest();
}

}  // namespace saccade::server
