#include "server/engine/pass_failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/api/error_text.h"
#include "models/device/out_of_memory.h"
#include "server/engine/device_lost.h"

namespace saccade::server {
namespace {

struct CudaError {
  // Part of CUDA's ABI.
  int code;
  // The beginning of CUDA's message.
  const char* text;
};

// CUDA's sticky errors: after one of them all later calls fail, until the process ends.
constexpr std::array<CudaError, 16> kSticky = {{
    {214, "uncorrectable ECC error"},
    {220, "uncorrectable NVLink error"},
    {226, "Invalid access of peer GPU memory over nvlink or a hardware error"},
    {700, "an illegal memory access"},
    {702, "the launch timed out"},
    {709, "context is destroyed"},
    {710, "device-side assert"},
    {714, "hardware stack error"},
    {715, "an illegal instruction"},
    {716, "misaligned address"},
    {717, "operation not supported on global/shared address space"},
    {718, "invalid program counter"},
    {719, "unspecified launch failure"},
    {721, "tensor memory not completely freed"},
    {810, "the MPS client has been terminated"},
    {911, "an async error has occured in external entity"},
}};

bool IsSticky(const std::exception& error) {
  if (const auto* of_device = dynamic_cast<const c10::AcceleratorError*>(&error)) {
    return std::any_of(kSticky.begin(), kSticky.end(), [of_device](const CudaError& sticky) {
      return sticky.code == of_device->get_error_code();
    });
  }
  // TorchScript rethrows what it caught with only the text.
  const absl::string_view said = error.what();
  return std::any_of(kSticky.begin(), kSticky.end(), [said](const CudaError& sticky) {
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
