// Efficient attention on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/efficient_attention/efficient_attention_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunEaCpu needs for this problem on at most `threads` threads.
template <typename A>
size_t EaCpuWorkspaceBytes(const EfficientAttentionProblem& problem, int threads);

// Computes problem.out. A is the accumulation type: double for double maps, otherwise float. The caller owns
// the workspace, which is aligned as by new and may be uninitialised. Blocks until done; does not allocate.
// The order of every sum depends on positions alone, so a sample's bits depend neither on the threads nor on
// the rest of the batch.
template <typename A>
void RunEaCpu(const EfficientAttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
              std::byte* workspace);

}  // namespace saccade::kernels
