// Siamese attention on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunSaoCpu needs for this problem on at most `threads` threads.
template <typename T>
size_t SaoCpuWorkspaceBytes(const SaoProblem& problem, int threads);

// Computes problem.out. T is float, BFloat16 or double (double ignores `isa` and uses the portable code). The
// caller owns the workspace, which is aligned as by new and may be uninitialised. Blocks until done; does not
// allocate. The split into blocks depends on positions and channels alone, and blocks are summed in order, so
// a sample's bits depend neither on the threads nor on the rest of the batch.
template <typename T>
void RunSaoCpu(const SaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
