// Kronecker attention on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunKaoCpu needs for this problem on at most `threads` threads.
size_t KaoCpuWorkspaceBytes(const KaoProblem& problem, int threads);

// Computes problem.out, for maps of float32, bfloat16 or float64 (which ignores `isa` and uses the portable
// code). The caller owns the workspace, which is aligned as by new and may be uninitialised. Blocks until
// done; does not allocate. The split of every sum depends on a sample's valid extent and channels alone, so
// its bits depend neither on the threads nor on the rest of the batch.
void RunKaoCpu(const KaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
