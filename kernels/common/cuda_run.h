// Shared by the CUDA bindings of all operators. Part of the plugin: includes LibTorch's CUDA headers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "kernels/common/cuda_error.h"

namespace saccade::kernels {

// Calls launch(workspace, stream) with `floats` uninitialised floats on the device of `like`, which must be
// the current one, and its current stream. `launch` returns null or a message, which becomes
// the exception of CheckLaunch(). Does not wait for the kernels.
template <typename Launch>
void LaunchWithWorkspace(const char* op, const at::Tensor& like, int64_t floats, const Launch& launch) {
  // The caching allocator orders reuse on this stream, so the memory may be released while the kernels still
  // run.
  const at::Tensor workspace = at::empty({floats}, like.options().dtype(at::kFloat));
  const char* error = launch(workspace.mutable_data_ptr<float>(), c10::cuda::getCurrentCUDAStream().stream());
  CheckLaunch(op, error);
}

}  // namespace saccade::kernels
