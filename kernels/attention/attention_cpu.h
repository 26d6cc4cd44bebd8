// Regular attention on the CPU, without LibTorch.
#pragma once

#include <cstddef>

#include "kernels/attention/attention_problem.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// Returns the bytes of scratch memory that RunAttentionCpu needs, aligned to 64 bytes.
size_t AttentionCpuWorkspaceBytes(const AttentionProblem& problem, int threads);

// Writes problem.out. The result's bits depend neither on the number of threads nor on the initial contents
// of `workspace`.
void RunAttentionCpu(const AttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
                     std::byte* workspace);

}  // namespace saccade::kernels
