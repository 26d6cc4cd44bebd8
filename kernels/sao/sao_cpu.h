// Siamese attention on the CPU, below tensors: knows neither LibTorch nor its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/sao/sao_problem.h"

namespace saccade::kernels {

// Bytes of workspace that RunSaoCpu needs for this problem on at most `threads` threads.
template <typename T>
size_t SaoCpuWorkspaceBytes(const SaoProblem& problem, int threads);

// Computes problem.out. T is float, BFloat16 or double (double ignores `isa` and runs the portable code).
// The workspace is the caller's, aligned as by new, and may hold anything. Blocks until done; allocates
// nothing. The split into blocks depends on positions and channels alone, and blocks are summed in their
// order, so neither the threads nor the rest of the batch change a bit of a sample's result.
template <typename T>
void RunSaoCpu(const SaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
