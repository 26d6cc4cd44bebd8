// CUDA's sticky errors: after one of them all later calls fail, until the process ends. Includes nothing of
// CUDA's, for code outside of the plugin.
#pragma once

#include <algorithm>
#include <array>

namespace saccade::kernels {

struct StickyError {
  // Part of CUDA's ABI.
  int code;
  // The beginning of CUDA's message.
  const char* text;
};

inline constexpr std::array<StickyError, 16> kStickyErrors = {{
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

inline bool IsStickyError(int code) {
  return std::any_of(kStickyErrors.begin(), kStickyErrors.end(),
                     [code](const StickyError& sticky) { return sticky.code == code; });
}

}  // namespace saccade::kernels
