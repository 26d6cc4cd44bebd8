// Inputs that are in shared memory instead of in the request.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Reads the shared inputs of one request. Their total size is limited to that of one tensor, which is also
// that of a message; otherwise a small request that names one range many times could exhaust memory.
class SharedInputs {
 public:
  // `memory` and `client` must outlive this object. `client` is SharedMemory's.
  explicit SharedInputs(const SharedMemory& memory, absl::string_view client = "")
      : memory_(memory), client_(client) {}

  // Copies the input that the parameters locate, after all of them were applied. INVALID_ARGUMENT if a part
  // of the range is missing, or the request's inputs are too large; other errors as SharedMemory::Read.
  absl::StatusOr<BytePieces> Read(const std::optional<SharedRange>& range);

 private:
  const SharedMemory& memory_;
  const absl::string_view client_;
  uint64_t taken_ = 0;
};

}  // namespace saccade::server
