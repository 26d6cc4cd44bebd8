#include "models/device/gpu_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <exception>
#include <mutex>

#include "models/api/error_text.h"
#include "models/device/stream_lock.h"

namespace saccade::models {

void FreeUnusedGpuMemory() {
  // Null without LibTorch's CUDA libraries.
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  if (allocator == nullptr || !allocator->initialized()) return;
  const std::lock_guard no_recording(GpuCacheMutex());
  try {
    allocator->emptyCache();
  } catch (const std::exception& error) {
    TORCH_WARN("CUDA error while GPU memory is given back: ", ErrorText(error));
  }
}

}  // namespace saccade::models
