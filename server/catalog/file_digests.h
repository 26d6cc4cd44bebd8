// Checksums of files, which are read again only after they have changed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/repository/checksums.h"

namespace saccade::server {

// What the file system says of the files: a text that changes if one is changed, or another takes its place.
// Empty if one of them is no regular file. Blocks on the file system.
std::string StampOfFiles(const std::vector<std::string>& paths);

// Thread-safe.
class FileDigests {
 public:
  // `sum` reads a file. `now` returns the time of the file system's clock.
  explicit FileDigests(FileSummer sum = FileSum, std::function<absl::Time()> now = absl::Now)
      : sum_(std::move(sum)), now_(std::move(now)) {}
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  // The SHA-256 of the file, as FileSum() returns it. The file is read unless an earlier call has read it and
  // its size, times and inode are still the same. The sum of a file that was changed less than two seconds
  // before it was read is not kept: another change within the same tick of the file system's clock would
  // leave its times as they are. FAILED_PRECONDITION also if it changes meanwhile. Blocks on the file system.
  absl::StatusOr<std::string> SumOf(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns a SHA-256 over the sums of the files in the order of `paths`, the ending of the first one's name,
  // and the names of the others relative to the first one's folder. Copies in other folders thus have the
  // same digest. nullopt if a path is no regular file, cannot be read, or changes meanwhile. Reads the files
  // as SumOf() does. REQUIRES: `paths` is not empty.
  std::optional<std::string> Of(const std::vector<std::string>& paths) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Kept {
    // StampOfFiles() of the file.
    std::string stamp;
    std::string sum;
  };
  // More files are read again. A graph may have some hundred files.
  static constexpr size_t kMaxKept = 32768;

  // SumOf() the file, which has this stamp.
  absl::StatusOr<std::string> SumOf(const std::string& path, const std::string& stamp)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a change of the file from now on will change its stamp.
  bool IsSettled(const std::string& path) const;

  const FileSummer sum_;
  const std::function<absl::Time()> now_;
  absl::Mutex mutex_;
  // By path.
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
