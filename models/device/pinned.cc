#include "models/device/pinned.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <cstddef>
#include <exception>

#include "models/api/error_text.h"

namespace saccade::models {
namespace {

// Null without LibTorch's CUDA libraries.
at::HostAllocator* PinnedAllocator() { return at::getHostAllocator(c10::kCUDA); }

}  // namespace

at::Tensor EmptyPinned(at::IntArrayRef shape, at::ScalarType type) {
  at::HostAllocator* const allocator = PinnedAllocator();
  if (allocator == nullptr) return at::empty(shape, type);
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  try {
    const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator,
                               /*resizable=*/false);
    return at::empty({0}, type).set_(storage, 0, shape);
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("no page-locked memory for ", bytes,
                    " bytes, which are copied to the GPU more slowly: ", ErrorText(error));
  }
  return at::empty(shape, type);
}

at::Tensor InPinned(const at::Tensor& x) {
  at::Tensor copy = EmptyPinned(x.sizes(), x.scalar_type());
  copy.copy_(x);
  return copy;
}

at::Tensor SmallSent(const at::Tensor& x, const at::Device& device) {
  if (device.is_cpu() || x.device() == device) return x;
  const at::Tensor copy = InPinned(x);
  return copy.to(device, copy.scalar_type(), /*non_blocking=*/IsPinned(copy));
}

bool IsPinned(const at::Tensor& x) {
  at::HostAllocator* const allocator = PinnedAllocator();
  return allocator != nullptr && x.has_storage() && x.storage().allocator() == allocator;
}

}  // namespace saccade::models
