#include "server/repository/stamps.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/repository/files.h"
#include "server/repository/repository.h"

namespace saccade::server {
namespace {

// Bounds on folder depth and stamp size, which no real model exceeds.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxBytes = size_t{4} << 20;

void StampFile(const RepositoryPath& file, std::string* stamp) {
  const auto resolved = file.Resolve();
  struct stat status{};
  if (!resolved.ok() || stat(resolved->c_str(), &status) != 0) {
    absl::StrAppend(stamp, file.shown(), " ?\n");
    return;
  }
  absl::StrAppend(stamp, file.shown(), " ", status.st_size, " ", status.st_mtim.tv_sec, ".",
                  status.st_mtim.tv_nsec, " ", status.st_ino, "\n");
}

void StampFolder(const RepositoryPath& folder, int depth, std::string* stamp) {
  const auto entries = folder.List();
  if (!entries.ok()) {
    absl::StrAppend(stamp, folder.shown(), " ?\n");
    return;
  }
  for (const DirectoryEntry& entry : *entries) {
    if (stamp->size() > kMaxBytes) return;
    const RepositoryPath path = folder / entry.name;
    if (!entry.is_directory) {
      StampFile(path, stamp);
    } else if (depth < kMaxDepth) {
      StampFolder(path, depth + 1, stamp);
    }
  }
}

}  // namespace

absl::StatusOr<ModelStamp> StampModel(const std::string& repository, absl::string_view name) {
  if (absl::Status status = CheckModelName(name); !status.ok()) return status;
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  const RepositoryPath folder = *root / name;
  const auto entries = folder.List();
  if (!entries.ok()) return entries.status();
  ModelStamp stamp;
  for (const DirectoryEntry& entry : *entries) {
    int64_t version = 0;
    if (!entry.is_directory) {
      StampFile(folder / entry.name, &stamp.shared);
    } else if (entry.name == "warmup" || entry.name == "samples") {
      StampFolder(folder / entry.name, 1, &stamp.shared);
    } else if (std::all_of(entry.name.begin(), entry.name.end(), absl::ascii_isdigit) &&
               absl::SimpleAtoi(entry.name, &version)) {
      std::string& of_version = stamp.versions[version];
      absl::StrAppend(&of_version, entry.name, "\n");
      StampFolder(folder / entry.name, 1, &of_version);
    }
  }
  return stamp;
}

absl::StatusOr<std::vector<std::string>> ListModels(const std::string& repository) {
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return root.status();
  const auto entries = root->List();
  if (!entries.ok()) return entries.status();
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    // Most file systems have a folder lost+found at their root.
    if (!entry.is_file && entry.name != "lost+found") names.push_back(entry.name);
  }
  return names;
}

}  // namespace saccade::server
