#include "server/engine/pass_failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/api/error_text.h"
#include "server/engine/device_lost.h"

namespace saccade::server {
namespace {

// CUDA's sticky errors, by their numbers, which are part of its ABI: 214 and 220 are uncorrectable memory and
// NVLink errors, 700 an illegal address, 702 a launch timeout, 709 a destroyed context, 710 an assertion, 714
// to 718 illegal instructions and addresses, 719 a launch failure.
constexpr std::array kSticky = {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};

// TorchScript rethrows what it caught with only the text.
constexpr std::array kStickyTexts = {"CUDA error: an illegal memory access",
                                     "CUDA error: unspecified launch failure",
                                     "CUDA error: device-side assert", "CUDA error: misaligned address",
                                     "CUDA error: uncorrectable ECC error"};
constexpr std::array kNoMemoryTexts = {"DefaultCPUAllocator: can't allocate memory",
                                       "DefaultCPUAllocator: not enough memory", "CUDA out of memory",
                                       "CUDA error: out of memory"};

template <typename Texts>
bool SaysOneOf(const std::exception& error, const Texts& texts) {
  const absl::string_view said = error.what();
  return std::any_of(texts.begin(), texts.end(),
                     [said](const char* text) { return absl::StrContains(said, text); });
}

bool IsSticky(const std::exception& error) {
  if (const auto* of_device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return std::find(kSticky.begin(), kSticky.end(), of_device->get_error_code()) != kSticky.end();
  return SaysOneOf(error, kStickyTexts);
}

bool IsNoMemory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr || SaysOneOf(error, kNoMemoryTexts);
}

}  // namespace

absl::Status PassFailure(const std::exception& error) {
  if (IsSticky(error)) {
    absl::Status lost = absl::UnavailableError(absl::StrCat(
        "the GPU has failed, so this server will exit: ", models::ErrorText(error), "; try another replica"));
    SetDeviceLost(lost);
    return lost;
  }
  if (IsNoMemory(error))
    return absl::ResourceExhaustedError(
        "out of memory in the forward pass; send fewer or smaller items at once");
  return absl::InternalError(models::ErrorText(error));
}

}  // namespace saccade::server
