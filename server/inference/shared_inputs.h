// Inputs that are in shared memory instead of in the request.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Reads the shared inputs of one request. Their total size is limited to that of one tensor, which is also
// that of a message; otherwise a small request that names one range many times could exhaust memory.
class SharedInputs {
 public:
  // The arguments must outlive this object. `client` is SharedMemory's and the ledger's. Without a ledger
  // nothing is charged.
  explicit SharedInputs(const SharedMemory& memory, absl::string_view client = "",
                        ByteLedger* ledger = nullptr)
      : memory_(memory), client_(client), ledger_(ledger) {}

  // Copies the input that the parameters locate, after all of them were applied. The copy is charged before
  // it is made and as long as it exists. INVALID_ARGUMENT if a part of the range is missing, or the request's
  // inputs are too large; other errors as SharedMemory::Read and ByteLedger::Charge.
  absl::StatusOr<BytePieces> Read(const std::optional<SharedRange>& range);

  // Bytes that were charged so far: the call's charged_bytes.
  int64_t charged() const { return ledger_ == nullptr ? 0 : static_cast<int64_t>(taken_); }

 private:
  const SharedMemory& memory_;
  const absl::string_view client_;
  ByteLedger* const ledger_;
  uint64_t taken_ = 0;
};

}  // namespace saccade::server
