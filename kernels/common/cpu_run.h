// Shared entry of every operator's CPU binding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>

#include "kernels/common/binding.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// Throws c10::Error unless the CPU code supports the map's dtype and the extents lie within the map.
void CheckOnCpu(const char* op, const char* argument, const at::Tensor& map, const OptionalTensor& valid);

// Calls `run` with LibTorch's threads and bytes(threads) bytes of uninitialised workspace.
void RunWithWorkspace(const std::function<size_t(int threads)>& bytes,
                      const std::function<void(const Parallel& parallel, std::byte* workspace)>& run);

}  // namespace saccade::kernels
