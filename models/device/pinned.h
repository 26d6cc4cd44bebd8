// Page-locked memory of the host, which a GPU reads and writes while the processor does something else.
#pragma once

#include <ATen/core/Tensor.h>

namespace saccade::models {

// Returns a contiguous tensor on the CPU whose values are undefined. It is in page-locked memory, which
// LibTorch keeps for the next such tensor, unless the machine has no CUDA libraries or no more of it.
at::Tensor EmptyPinned(at::IntArrayRef shape, at::ScalarType type);

// Returns a contiguous copy of `x`, which is on the CPU, in such memory.
at::Tensor InPinned(const at::Tensor& x);

// Copies a small tensor, such as sizes or regions, from the CPU to `device`. Does not wait for the copy if
// there is page-locked memory for it. Returns `x` itself if it is there already, as in a recorded pass.
at::Tensor SmallSent(const at::Tensor& x, const at::Device& device);

// True if the tensor is in page-locked memory of EmptyPinned(). LibTorch does not reuse it before copies to
// and from a GPU that do not block have ended.
bool IsPinned(const at::Tensor& x);

}  // namespace saccade::models
