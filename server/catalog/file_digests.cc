#include "server/catalog/file_digests.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/sha256.h"
#include "server/repository/checksums.h"

namespace saccade::server {

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

std::optional<std::string> FileDigests::Of(const std::vector<std::string>& paths) {
  const std::string stamp = StampOfFiles(paths);
  if (stamp.empty()) return std::nullopt;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = kept_.find(paths.front());
    if (found != kept_.end() && found->second.stamp == stamp) return found->second.digest;
  }
  const std::filesystem::path first(paths.front());
  std::string text;
  for (const std::string& path : paths) {
    const auto sum = FileSum(path);
    if (!sum.ok()) return std::nullopt;
    const std::filesystem::path name =
        text.empty() ? first.extension()
                     : std::filesystem::path(path).lexically_relative(first.parent_path());
    absl::StrAppend(&text, *sum, " ", absl::CEscape(name.string()), "\n");
  }
  std::string digest = Sha256Hex(text);
  if (digest.empty() || StampOfFiles(paths) != stamp) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  if (kept_.size() >= kMaxKept) kept_.clear();
  kept_[paths.front()] = {stamp, digest};
  return digest;
}

}  // namespace saccade::server
