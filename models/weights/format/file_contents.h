// A file's bytes, read into memory of this process. Nothing is mapped from the file: whoever cuts a mapped
// file short ends the process that reads it with SIGBUS, and whoever writes into it changes weights that are
// served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Larger files are no weights.
inline constexpr int64_t kMaxWeightsFileBytes = int64_t{8} << 30;

class FileContents {
 public:
  // Returns how many bytes of a file are read, from its beginning (kBeginningBytes, or all of a shorter
  // file).
  using Wanted = std::function<size_t(Bytes beginning)>;
  static constexpr size_t kBeginningBytes = 16;

  // Reads a file, or the first bytes of it that `wanted` asks for. Blocks while reading. Throws a LoadError
  // with the path if the file cannot be read, is not a regular file, is empty, is larger than `max_bytes`, or
  // changes its size meanwhile.
  static std::shared_ptr<const FileContents> Read(const std::string& path, int64_t max_bytes,
                                                  const Wanted& wanted = nullptr);

  FileContents(const FileContents&) = delete;
  FileContents& operator=(const FileContents&) = delete;
  ~FileContents();

  // As many bytes as the file has, read-only, valid while this object exists. Those that were not wanted are
  // zero and take no memory.
  Bytes bytes() const { return bytes_; }

  // Releases the memory of the whole pages within `part`, whose bytes are zero from then on.
  void LetGo(Bytes part) const;

 private:
  explicit FileContents(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace saccade::models
