// A weights file mapped into memory, read-only.
#pragma once

#include <memory>
#include <string>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

class MappedFile {
 public:
  // Refuses what is not a regular file, is empty, or is larger than `max_bytes`. Throws LoadError with the
  // path.
  static std::shared_ptr<const MappedFile> Open(const std::string& path, int64_t max_bytes);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Valid while this object lives and nobody shortens the file in place; replacing it by another is harmless.
  Bytes bytes() const { return bytes_; }

  // Lets go of the memory behind these bytes of the file, as far as they fill pages; whoever reads them again
  // gets them from the disk again.
  void LetGo(Bytes part) const;

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace saccade::models
