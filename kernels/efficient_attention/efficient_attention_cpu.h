// Efficient attention on the CPU, below tensors: knows neither LibTorch nor its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/efficient_attention/efficient_attention_problem.h"

namespace saccade::kernels {

// Bytes of workspace that RunEaCpu needs for this problem on at most `threads` threads.
template <typename A>
size_t EaCpuWorkspaceBytes(const EfficientAttentionProblem& problem, int threads);

// Computes problem.out. A is the type that sums are kept in: double for maps of double, else float. The
// workspace is the caller's, aligned as by new, and may hold anything. Blocks until done; allocates nothing.
// What is added up, and in which order, depends on positions alone, so neither the threads nor the rest of
// the batch change a bit of a sample's result.
template <typename A>
void RunEaCpu(const EfficientAttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
              std::byte* workspace);

}  // namespace saccade::kernels
