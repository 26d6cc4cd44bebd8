// Bounded access to the files of a repository, never outside of it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

struct DirectoryEntry {
  std::string name;
  // Type after following symbolic links; both are false for other types and for dangling links.
  bool is_directory = false;
  bool is_file = false;
};

// A path inside the repository. `shown` is the part below the repository's root, used in errors.
class RepositoryPath {
 public:
  // Blocks on the file system. An error if `repository` is not a readable directory.
  static absl::StatusOr<RepositoryPath> Root(const std::string& repository);

  // Appends a component. REQUIRES: `name` is a single path component.
  RepositoryPath operator/(absl::string_view name) const;

  const std::string& shown() const { return shown_; }
  bool Exists() const;

  // Lists the directory, sorted by name, without hidden entries (which Kubernetes creates for its own use).
  // Blocks on the file system.
  absl::StatusOr<std::vector<DirectoryEntry>> List() const;

  // The path without symbolic links; an error if it leads out of the repository.
  absl::StatusOr<std::filesystem::path> Resolve() const;

  // The path without symbolic links in its folder, but with its own name, even if that is a link: its ending
  // and the files beside it are then those that the repository shows, and that checksums cover. An error if
  // the folder or the link leads out of the repository. REQUIRES: not the root.
  absl::StatusOr<std::filesystem::path> ResolveFolder() const;

  // Reads a regular file. An error if it has more than `max_bytes`, holds NUL, or is not UTF-8. Blocks on the
  // file system.
  absl::StatusOr<std::string> ReadText(size_t max_bytes) const;

 private:
  RepositoryPath(std::filesystem::path root, std::filesystem::path path, std::string shown);

  std::filesystem::path root_;
  std::filesystem::path path_;
  std::string shown_;
};

// An error if `path`, when its links are followed, leads out of the repository. What is missing or cannot be
// followed is left to the reader. Call it before opening a file that was found earlier. Blocks on the file
// system.
absl::Status CheckInside(const std::string& repository, const std::string& path);

}  // namespace saccade::server
