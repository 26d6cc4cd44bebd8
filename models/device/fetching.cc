#include "models/device/fetching.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/pinned.h"

namespace saccade::models {
namespace {

std::optional<c10::Stream> ComputingStream(const at::Tensor& x) {
  if (x.device().is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device());
}

}  // namespace

Fetching::Fetching(const at::Tensor& x) : Fetching(x, ComputingStream(x)) {}

Fetching::Fetching(const at::Tensor& x, const std::optional<c10::Stream>& stream) : copy_(x) {
  if (!stream) return;
  const at::Tensor dense = x.is_non_overlapping_and_dense() ? x : x.clone();
  const at::Tensor host = EmptyPinned({dense.numel()}, dense.scalar_type());
  if (!IsPinned(host)) {
    copy_ = dense.to(at::kCPU);
    return;
  }
  // Both sides are flat. LibTorch would copy to other layouts by way of a tensor of its own, and on the CPU,
  // before the GPU has written it.
  host.copy_(dense.as_strided({dense.numel()}, {1}), /*non_blocking=*/true);
  copied_.emplace(stream->device_type());
  copied_->record(*stream);
  copy_ = host.as_strided(dense.sizes(), dense.strides());
}

at::Tensor Fetching::Wait() const {
  if (copied_) copied_->synchronize();
  return copy_;
}

}  // namespace saccade::models
