#include "server/repository/stamps.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/repository/files.h"
#include "server/repository/repository.h"
#include "server/repository/versions.h"

namespace saccade::server {
namespace {

// Bounds on folder depth and stamp size, which no real model exceeds.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxBytes = size_t{4} << 20;
// Most file systems have this folder at their root.
constexpr absl::string_view kLostFound = "lost+found";

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

// An error if these are the entries of a model's own folder, and not of a folder of models.
absl::Status CheckAboveModels(const RepositoryPath& root, const std::vector<DirectoryEntry>& entries) {
  if ((root / "config.pbtxt").Exists())
    return absl::InvalidArgumentError(
        "is a model's own folder: it holds config.pbtxt; give the folder above it");
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_file && IsWeightsName(entry.name)) {
      return absl::InvalidArgumentError(absl::StrCat("is the folder of a model's version: it holds ",
                                                     absl::CHexEscape(entry.name),
                                                     "; give the folder two levels above it"));
    }
    const bool number = std::all_of(entry.name.begin(), entry.name.end(), absl::ascii_isdigit);
    if (!entry.is_directory || !number) continue;
    const auto files = (root / entry.name).List();
    if (!files.ok()) continue;
    for (const DirectoryEntry& file : *files) {
      if (!file.is_file || !IsWeightsName(file.name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("is a model's own folder: it holds the version ",
                                                     entry.name, " with ", absl::CHexEscape(file.name),
                                                     "; give the folder above it"));
    }
  }
  return absl::OkStatus();
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
  if (absl::Status above = CheckAboveModels(*root, *entries); !above.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--model-repository is '", absl::CHexEscape(repository),
                                                   "', which ", above.message(),
                                                   ", which holds a folder for each model"));
  }
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_file && entry.name != kLostFound) names.push_back(entry.name);
  }
  return names;
}

bool HoldsModel(const std::string& repository, absl::string_view name) {
  if (name.empty() || name.front() == '.' || name.find('/') != name.npos || name == kLostFound) return false;
  const auto root = RepositoryPath::Root(repository);
  if (!root.ok()) return false;
  const RepositoryPath folder = *root / name;
  if (!folder.Exists()) return false;
  const auto resolved = folder.Resolve();
  std::error_code error;
  return !resolved.ok() || !std::filesystem::is_regular_file(*resolved, error);
}

}  // namespace saccade::server
