#include "server/inference/shared_inputs.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/inference/parameters.h"

namespace saccade::server {

absl::StatusOr<BytePieces> SharedInputs::Read(const std::optional<SharedRange>& range) {
  absl::Status status =
      range ? CheckParameters(range) : absl::InvalidArgumentError("is not in shared memory");
  if (status.ok()) status = memory_.Check(*range, client_);
  if (!status.ok()) return status;
  // SharedMemory::Check() limits the size of each range, so this does not overflow.
  if (range->size > memory_.max_tensor_bytes() - taken_) {
    return absl::InvalidArgumentError(
        absl::StrCat("with this input, the request's inputs in shared memory have ", taken_ + range->size,
                     " bytes, more than --max-message-bytes ", memory_.max_tensor_bytes()));
  }
  auto charge = ledger_ == nullptr ? absl::StatusOr<ByteCharge>(ByteCharge())
                                   : ledger_->Charge(client_, static_cast<int64_t>(range->size));
  if (!charge.ok()) return charge.status();
  auto copy = memory_.Read(*range, client_);
  if (!copy.ok()) return copy;
  taken_ += range->size;
  struct Charged {
    ByteCharge charge;
    BytePieces copy;
  };
  auto charged = std::make_shared<const Charged>(Charged{*std::move(charge), *std::move(copy)});
  return charged->copy.KeptBy(charged);
}

}  // namespace saccade::server
