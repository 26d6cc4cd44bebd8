// The memory of a registered region, of either kind.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Thread-safe: regions are read and written at the same time, as their clients may do, too.
class RegionMemory {
 public:
  RegionMemory() = default;
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;
  // Closes it; the client's memory stays.
  virtual ~RegionMemory() = default;

  // Copy from and to `offset`. FAILED_PRECONDITION if the range is not all in the memory any more; INTERNAL
  // if the system or the GPU fails.
  virtual absl::Status Read(uint64_t offset, size_t size, char* to) const = 0;
  virtual absl::Status Write(uint64_t offset, absl::string_view bytes) const = 0;
};

}  // namespace saccade::server
