// A weights file mapped into memory, read-only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Larger files are no weights.
inline constexpr int64_t kMaxWeightsFileBytes = int64_t{8} << 30;

class MappedFile {
 public:
  // Maps a file. Throws a LoadError with the path if it cannot be read, is not a regular file, is empty, or
  // is larger than `max_bytes`.
  static std::shared_ptr<const MappedFile> Open(const std::string& path, int64_t max_bytes);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Valid while this object exists, unless the file is truncated in place. Replacing the file by another is
  // safe.
  Bytes bytes() const { return bytes_; }

  // Releases the memory of the whole pages within `part`. Later reads load them from the disk again.
  void LetGo(Bytes part) const;

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace saccade::models
