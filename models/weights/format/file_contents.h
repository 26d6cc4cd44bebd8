// A file's bytes, read into memory of this process. Nothing is mapped from the file: whoever cuts a mapped
// file short ends the process that reads it with SIGBUS, and whoever writes into it changes weights that are
// served.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Larger files are no weights.
inline constexpr int64_t kMaxWeightsFileBytes = int64_t{8} << 30;

// A regular file that is open for reading. The functions block, and throw a LoadError with the path.
class OpenFile {
 public:
  // Refuses what is not a regular file, is empty, or is larger than `max_bytes`.
  OpenFile(const std::string& path, int64_t max_bytes);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  // As it was when the file was opened.
  size_t size() const { return size_; }
  // Fills `memory` with the bytes from `begin` on. An error if the file has become too short for that.
  void Read(size_t begin, std::span<std::byte> memory) const;
  // An error if the file has another size now.
  void CheckSize() const;

 private:
  size_t SizeNow() const;
  [[noreturn]] void FailChanged(size_t now) const;

  const std::string path_;
  int number_ = -1;
  size_t size_ = 0;
};

class FileContents {
 public:
  // Returns how many bytes of a file are read, from its beginning (kBeginningBytes, or all of a shorter
  // file).
  using Wanted = std::function<size_t(Bytes beginning)>;
  static constexpr size_t kBeginningBytes = 16;

  // How many bytes of all files are in memory now.
  static int64_t HeldByAll();

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

  // Counts bytes that are read, and, at most as many, bytes that are released.
  void Hold(size_t bytes);
  void Release(size_t bytes) const;

  Bytes bytes_;
  mutable std::atomic<size_t> held_ = 0;
};

}  // namespace saccade::models
