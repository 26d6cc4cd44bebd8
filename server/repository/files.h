// Files of a repository, read with bounds and never from outside of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace saccade::server {

struct DirectoryEntry {
  std::string name;
  // After following symbolic links; both false for what is neither or dangles.
  bool is_directory = false;
  bool is_file = false;
};

// A path inside the repository; `shown` is the part after the repository's root, which errors name.
class RepositoryPath {
 public:
  // Blocks. An error if `repository` is no readable directory.
  static absl::StatusOr<RepositoryPath> Root(const std::string& repository);

  // One step down. REQUIRES: `name` is a single path component.
  RepositoryPath operator/(absl::string_view name) const;

  const std::string& shown() const { return shown_; }
  bool Exists() const;

  // Sorted by name, without hidden entries (which Kubernetes makes for its own use). Blocks.
  absl::StatusOr<std::vector<DirectoryEntry>> List() const;

  // The path without symbolic links; an error if it leads out of the repository.
  absl::StatusOr<std::filesystem::path> Resolve() const;

  // The bytes of a regular file; an error if there are more than `max_bytes`, or if they are not UTF-8.
  // Blocks.
  absl::StatusOr<std::string> ReadText(size_t max_bytes) const;

 private:
  RepositoryPath(std::filesystem::path root, std::filesystem::path path, std::string shown);

  std::filesystem::path root_;
  std::filesystem::path path_;
  std::string shown_;
};

// True for well-formed UTF-8 without NUL: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool IsUtf8Text(absl::string_view text);

}  // namespace saccade::server
