// Between the tensors of sao_cuda.cc and the kernels of sao.cu: neither CUDA's nor LibTorch's headers.
#pragma once

#include <cstdint>

#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

enum class SaoCudaDtype { kFloat32, kFloat16, kBFloat16 };

// Floats of device memory that the launch needs, or -1 if the problem has more heads, channels or samples
// than the kernels take.
int64_t SaoCudaWorkspaceFloats(const SaoProblem& problem);

// Enqueues the kernels on `stream` (a cudaStream_t) and returns at once: null, or CUDA's words for what is
// wrong. All pointers are to device memory. Allocates nothing and synchronises nothing, so it can be
// captured.
const char* LaunchSaoCuda(const SaoProblem& problem, SaoCudaDtype dtype, float* workspace, void* stream);

}  // namespace saccade::kernels
