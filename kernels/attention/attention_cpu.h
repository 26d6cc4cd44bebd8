// Regular attention on the CPU, below tensors.
#pragma once

#include <cstddef>

#include "kernels/attention/attention_problem.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// Scratch memory that RunAttentionCpu needs, aligned to 64 bytes.
size_t AttentionCpuWorkspaceBytes(const AttentionProblem& problem, int threads);

// Writes problem.out. The result's bits do not depend on the number of threads, nor on the contents of
// `workspace`.
void RunAttentionCpu(const AttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
                     std::byte* workspace);

}  // namespace saccade::kernels
