// Files that decide who may talk to the daemon: read whole and bounded, and looked at again while it runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

inline constexpr size_t kMostSecretBytes = size_t{1} << 20;

// A regular file of at most kMostSecretBytes. An error names `flag`, the path and what is wrong.
absl::StatusOr<std::string> ReadSecretFile(absl::string_view flag, const std::string& path);

// Overwrites what must not stay in memory, and empties it.
void Forget(std::string& secret);

// Tells whether files have changed, by inode, size and times. Of links it is what they lead to, so a Secret
// that Kubernetes replaces counts. Used by one thread.
class SecretFiles {
 public:
  // What they are now counts as taken: make it before they are read.
  explicit SecretFiles(std::vector<std::string> paths);

  // Whether they are other files than those that were taken, and the last look saw the same ones: whoever
  // still writes is left alone. One of several that is written later is seen by a later look.
  bool Look();
  // What the last look saw was taken. Until then every look tells of it.
  void Taken() { taken_ = seen_; }

  // Looks, and calls `read` if they have changed. What it cannot read is told in the log once, behind
  // `complaint`, and not taken: one of several may be written later.
  void LookAndRead(absl::FunctionRef<absl::Status()> read, absl::string_view complaint);

 private:
  struct Stamp {
    // In seconds and nanoseconds.
    using Time = std::pair<int64_t, int64_t>;

    bool there = false;
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    Time modified = {};
    Time changed = {};

    bool operator==(const Stamp&) const = default;
  };

  std::vector<Stamp> Stamps() const;

  const std::vector<std::string> paths_;
  std::vector<Stamp> taken_;
  std::vector<Stamp> seen_;
  // What was last said about them.
  std::string problem_;
};

}  // namespace saccade::server
