// Global self-attention on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/gsa/gsa_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunGsaCpu needs for this problem on at most `threads` threads.
template <typename A>
size_t GsaCpuWorkspaceBytes(const GsaProblem& problem, int threads);

// Computes problem.out. A is the accumulation type: double for double maps, otherwise float. The caller owns
// the workspace, which is aligned as by new and may be uninitialised. Blocks until done; does not allocate.
// The order of every sum depends on a sample's positions and the channels alone, so its bits depend neither
// on the threads nor on the rest of the batch.
template <typename A>
void RunGsaCpu(const GsaProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
