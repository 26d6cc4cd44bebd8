// A file of shared memory that a client named.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Movable; closes what it holds.
class SharedFile {
 public:
  // INVALID_ARGUMENT or NOT_FOUND unless `key` is a plain name, with or without a slash before it, of a
  // regular file in `folder` that belongs to the daemon's user, or that its owner opened to its group or to
  // everybody: a daemon that may read everything does not read for others what they may not. Links are not
  // followed.
  static absl::StatusOr<SharedFile> Open(const std::string& folder, const std::string& key);

  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  // As it is now.
  absl::StatusOr<uint64_t> Size() const;

  // FAILED_PRECONDITION if the file ends before them.
  absl::Status Read(uint64_t offset, size_t size, char* to) const;
  absl::Status Write(uint64_t offset, absl::string_view bytes) const;

 private:
  explicit SharedFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace saccade::server
