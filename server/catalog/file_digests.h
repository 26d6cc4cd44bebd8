// Digests of what files hold. Files are read again only after they have changed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// What the file system says of the files: a text that changes if one is changed, or another takes its place.
// Empty if one of them is no regular file. Blocks on the file system.
std::string StampOfFiles(const std::vector<std::string>& paths);

// Thread-safe.
class FileDigests {
 public:
  FileDigests() = default;
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  // Returns a SHA-256 over the contents of the files in the order of `paths`, the ending of the first one's
  // name, and the names of the others relative to the first one's folder. Copies in other folders thus have
  // the same digest. nullopt if a path is no regular file, cannot be read, or changes meanwhile. The files
  // are read unless an earlier call has read them and their sizes, times and inodes are still the same.
  // Blocks on the file system. REQUIRES: `paths` is not empty.
  std::optional<std::string> Of(const std::vector<std::string>& paths) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Kept {
    // Says which files they were: a digest of their paths, sizes, times and inodes.
    std::string stamp;
    std::string digest;
  };
  // More files are read again.
  static constexpr size_t kMaxKept = 8192;

  absl::Mutex mutex_;
  // By the first path.
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
