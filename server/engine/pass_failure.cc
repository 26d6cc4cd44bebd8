#include "server/engine/pass_failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/sticky_errors.h"
#include "models/api/error_text.h"
#include "models/device/out_of_memory.h"
#include "server/engine/device_lost.h"

namespace saccade::server {
namespace {

bool IsSticky(const std::exception& error) {
  if (const auto* of_device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return kernels::IsStickyError(of_device->get_error_code());
  // TorchScript rethrows what it caught with only the text.
  const absl::string_view said = error.what();
  return std::any_of(kernels::kStickyErrors.begin(), kernels::kStickyErrors.end(),
                     [said](const kernels::StickyError& sticky) {
                       return absl::StrContains(said, absl::StrCat("CUDA error: ", sticky.text));
                     });
}

}  // namespace

absl::Status PassFailure(const std::exception& error) {
  if (IsSticky(error)) {
    absl::Status lost = absl::UnavailableError(absl::StrCat(
        "the GPU has failed, so this server will exit: ", models::ErrorText(error), "; try another replica"));
    SetDeviceLost(lost);
    return lost;
  }
  if (models::IsOutOfMemory(error))
    return absl::ResourceExhaustedError(
        "out of memory in the forward pass; send fewer or smaller items at once");
  return absl::InternalError(models::ErrorText(error));
}

}  // namespace saccade::server
