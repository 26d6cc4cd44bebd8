// Inputs that come in memory that clients share, in place of the request.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Of one request: together they take no more than one tensor may, which is what a message may. Otherwise a
// small request that names the same range often would take all memory there is.
class SharedInputs {
 public:
  // `memory` must outlive it.
  explicit SharedInputs(const SharedMemory& memory) : memory_(memory) {}

  // A copy of what an input's parameters point to, all of which were applied. INVALID_ARGUMENT if a part of
  // the range is missing, or the inputs are too large; other errors as SharedMemory::Read.
  absl::StatusOr<BytePieces> Read(const std::optional<SharedRange>& range);

 private:
  const SharedMemory& memory_;
  uint64_t taken_ = 0;
};

}  // namespace saccade::server
