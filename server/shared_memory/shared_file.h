// A shared memory file that a client named.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/shared_memory/region_memory.h"

namespace saccade::server {

// Owns a file descriptor. Move-only.
class SharedFile : public RegionMemory {
 public:
  // Opens the regular file `key` in `folder`. `key` is a plain file name, with an optional leading slash. The
  // file must belong to the daemon's user, or its owner must have made it readable and writable for the
  // daemon's group or for everybody, so that a privileged daemon does not give clients access to files that
  // they may not use. Links are not followed. INVALID_ARGUMENT if a condition is violated, NOT_FOUND if the
  // file does not exist.
  static absl::StatusOr<SharedFile> Open(const std::string& folder, const std::string& key);

  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile() override;

  // Returns the current size of the file in bytes.
  absl::StatusOr<uint64_t> Size() const;

  // FAILED_PRECONDITION if the range extends beyond the end of the file.
  absl::Status Read(uint64_t offset, size_t size, char* to) const override;
  absl::Status Write(uint64_t offset, absl::string_view bytes) const override;

 private:
  explicit SharedFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace saccade::server
