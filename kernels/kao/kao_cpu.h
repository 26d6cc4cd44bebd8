// Kronecker attention on the CPU, below tensors: knows neither LibTorch nor its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/kao/kao_problem.h"

namespace saccade::kernels {

// Bytes of workspace that RunKaoCpu needs for this problem on at most `threads` threads.
size_t KaoCpuWorkspaceBytes(const KaoProblem& problem, int threads);

// Computes problem.out, for maps of float32, bfloat16 or float64 (which ignores `isa` and runs the portable
// code). The workspace is the caller's, aligned as by new, and may hold anything. Blocks until done;
// allocates nothing. How sums are split depends on a sample's valid extent and channels alone, so neither the
// threads nor the rest of the batch change a bit of its result.
void RunKaoCpu(const KaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
