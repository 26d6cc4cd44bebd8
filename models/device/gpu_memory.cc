#include "models/device/gpu_memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>

#include "models/api/error_text.h"
#include "models/device/stream_lock.h"

namespace saccade::models {
namespace {

// Null without LibTorch's CUDA libraries, or if no GPU was used.
c10::DeviceAllocator* UsedAllocator() {
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

}  // namespace

void FreeUnusedGpuMemory() {
  c10::DeviceAllocator* const allocator = UsedAllocator();
  if (allocator == nullptr) return;
  const std::lock_guard no_recording(GpuCacheMutex());
  try {
    allocator->emptyCache();
    // Page-locked memory is taken from all other uses of the machine's.
    if (at::HostAllocator* const pinned = at::getHostAllocator(c10::kCUDA)) pinned->empty_cache();
  } catch (const std::exception& error) {
    TORCH_WARN("CUDA error while GPU memory is given back: ", ErrorText(error));
  }
}

std::optional<GpuMemory> ReadGpuMemory(int gpu) {
  c10::DeviceAllocator* const allocator = UsedAllocator();
  if (allocator == nullptr) return std::nullopt;
  try {
    const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(gpu));
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return GpuMemory{.reserved_bytes = stats.reserved_bytes[kAll].current,
                     .allocated_bytes = stats.allocated_bytes[kAll].current,
                     .retries = stats.num_alloc_retries};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace saccade::models
