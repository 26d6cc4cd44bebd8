#include "server/catalog/file_digests.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

// Times of files are at most so coarse: in file systems that have whole seconds alone, and in others.
constexpr absl::Duration kTickOfSeconds = absl::Seconds(2);
constexpr absl::Duration kTick = absl::Milliseconds(100);

}  // namespace

// The time of the last change of the inode is part of it, because anybody can set the time of the last change
// of the contents.
std::string StampOfFiles(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    struct stat file{};
    if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return "";
    absl::StrAppend(&text, absl::CEscape(path), " ", file.st_dev, " ", file.st_ino, " ", file.st_size, " ",
                    file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, " ", file.st_ctim.tv_sec, ".",
                    file.st_ctim.tv_nsec, "\n");
  }
  return Sha256Hex(text);
}

absl::StatusOr<std::string> FileDigests::SumOf(const std::string& path) {
  const std::string stamp = StampOfFiles({path});
  // The error says what is wrong with the file.
  if (stamp.empty()) return sum_(path);
  return SumOf(path, stamp);
}

absl::StatusOr<std::string> FileDigests::SumOf(const std::string& path, const std::string& stamp) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = kept_.find(path);
    if (found != kept_.end() && found->second.stamp == stamp) return found->second.sum;
  }
  // Changes while the file is read count as well.
  const bool is_settled = IsSettled(path);
  auto sum = sum_(path);
  if (!sum.ok()) return sum;
  if (StampOfFiles({path}) != stamp) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was changed while it was read; write it elsewhere, and rename it"));
  }
  if (!is_settled) return sum;
  absl::MutexLock lock(&mutex_);
  if (kept_.size() >= kMaxKept) kept_.clear();
  kept_[path] = {stamp, *sum};
  return sum;
}

bool FileDigests::IsSettled(const std::string& path) const {
  const absl::Time now = now_();
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) return false;
  // A file may come from a machine whose clock is ahead.
  return absl::AbsDuration(now - absl::TimeFromTimespec(file.st_ctim)) >=
         (file.st_ctim.tv_nsec == 0 ? kTickOfSeconds : kTick);
}

std::optional<std::string> FileDigests::Of(const std::vector<std::string>& paths) {
  const std::string stamp = StampOfFiles(paths);
  const std::filesystem::path first(paths.front());
  std::string text;
  for (const std::string& path : paths) {
    const std::string stamp_of_one = StampOfFiles({path});
    if (stamp_of_one.empty()) return std::nullopt;
    const auto sum = SumOf(path, stamp_of_one);
    if (!sum.ok()) return std::nullopt;
    const std::filesystem::path name =
        text.empty() ? first.extension()
                     : std::filesystem::path(path).lexically_relative(first.parent_path());
    absl::StrAppend(&text, *sum, " ", absl::CEscape(name.string()), "\n");
  }
  // A file may have changed while a later one was read.
  if (StampOfFiles(paths) != stamp) return std::nullopt;
  std::string digest = Sha256Hex(text);
  if (digest.empty()) return std::nullopt;
  return digest;
}

}  // namespace saccade::server
