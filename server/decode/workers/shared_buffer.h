// Memory that the daemon shares with one worker process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace saccade::server {

// Not thread-safe.
class SharedBuffer {
 public:
  // RESOURCE_EXHAUSTED if the system has no memory or no descriptor for it.
  static absl::StatusOr<std::unique_ptr<SharedBuffer>> Create();
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  // Makes it at least `bytes` large and keeps its content; data() may change. Pages that were not written
  // take no memory. RESOURCE_EXHAUSTED if that is impossible.
  absl::Status Grow(uint64_t bytes);
  // Gives the memory beyond `bytes` back to the system.
  void Trim(uint64_t bytes);

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return mapped_; }
  int descriptor() const { return descriptor_; }

 private:
  explicit SharedBuffer(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
  uint8_t* data_ = nullptr;
  uint64_t mapped_ = 0;
  // The file never shrinks: it is sealed, so that a worker cannot take pages away from the daemon.
  uint64_t file_bytes_ = 0;
};

}  // namespace saccade::server
