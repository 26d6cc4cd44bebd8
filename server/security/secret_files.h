// Files with secrets (certificates, keys, tokens): bounded reading, and detection of changes while the daemon
// runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/settled_change.h"

namespace saccade::server {

inline constexpr size_t kMaxSecretBytes = size_t{1} << 20;

// Reads a regular file of at most kMaxSecretBytes, whose mode gives other users no rights. A file of a Secret
// that Kubernetes has mounted may have any mode: only the pod sees it. An error states `flag`, the path and
// the problem.
absl::StatusOr<std::string> ReadSecretFile(absl::string_view flag, const std::string& path);

// The same for a file that everybody may read, as a certificate.
absl::StatusOr<std::string> ReadPublicFile(absl::string_view flag, const std::string& path);

// Overwrites the bytes of `secret` and clears it.
void Wipe(std::string& secret);

// Detects changes of files by inode, size and times. Links are followed, so the replacement of a Kubernetes
// Secret is detected. Not thread-safe.
class SecretFiles {
 public:
  // Treats the current state of the files as read, so construct it before reading them.
  explicit SecretFiles(std::vector<std::string> paths);

  // Returns true if the files differ from those last marked with MarkRead() and have not changed since the
  // previous call (SettledChange). If one of several files is written later, a later call detects it.
  bool HaveChanged();
  // Marks the state seen by the last HaveChanged() as read. Until then, HaveChanged() keeps returning true.
  void MarkRead() { change_.UseFound(); }

  // Calls `read` if HaveChanged(). If `read` fails, logs `message` with the reason, once per reason, and does
  // not mark the files as read, because one of several may still be written.
  void ReadIfChanged(absl::FunctionRef<absl::Status()> read, absl::string_view message);

 private:
  struct Stamp {
    // Seconds and nanoseconds.
    using Time = std::pair<int64_t, int64_t>;

    bool exists = false;
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    Time modified = {};
    Time changed = {};

    bool operator==(const Stamp&) const = default;
  };

  std::vector<Stamp> Stamps() const;

  const std::vector<std::string> paths_;
  // The state in use is the one that was read.
  SettledChange<std::vector<Stamp>> change_;
  // The last reason that was logged.
  std::string problem_;
};

}  // namespace saccade::server
