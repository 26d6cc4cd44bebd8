#include "models/device/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

namespace saccade::models {
namespace {

// cudaErrorMemoryAllocation; CUDA's numbers are part of its ABI.
constexpr int kCudaNoMemory = 2;
// TorchScript and packages rethrow what they caught with only the text.
constexpr std::array<std::string_view, 7> kTexts = {"std::bad_alloc",
                                                    "DefaultCPUAllocator: can't allocate memory",
                                                    "DefaultCPUAllocator: not enough memory",
                                                    "CUDA out of memory",
                                                    "CUDA error: out of memory",
                                                    "CUDNN_STATUS_ALLOC_FAILED",
                                                    "CUBLAS_STATUS_ALLOC_FAILED"};

}  // namespace

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (const auto* of_device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return of_device->get_error_code() == kCudaNoMemory;
  const std::string_view text = error.what();
  return std::any_of(kTexts.begin(), kTexts.end(),
                     [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

}  // namespace saccade::models
