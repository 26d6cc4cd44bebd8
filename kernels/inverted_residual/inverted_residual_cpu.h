// The inverted residual on the CPU, without LibTorch and its threads: a 1x1 expansion, a 3x3 filter of each
// channel and a 1x1 projection, row by row, so that the expanded maps are never in memory as a whole.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/inverted_residual/inverted_residual_problem.h"

namespace saccade::kernels {

// Packs `weight`, [outputs][inputs], as PackedProduct::data has it; the result has Padded(outputs) times
// `inputs` entries. REQUIRES: for BFloat16 `inputs` is even.
template <typename T>
std::vector<T> PackProduct(const float* weight, int64_t outputs, int64_t inputs);

// Returns the bytes of workspace that RunInvertedResidualCpu needs for this problem with a Parallel of so
// many threads. (More threads may need less: each makes fewer rows at a time.)
template <typename T>
size_t InvertedResidualCpuWorkspaceBytes(const InvertedResidualProblem& problem, int threads);

// Computes problem.out. T is float, or, with MultipliesBFloat16() and CpuIsa::kAvx512, BFloat16. The caller
// owns the workspace, which is aligned as by new and may be uninitialised. Blocks until done; does not
// allocate. Each sum is over one output's inputs in their order, so a sample's bits depend neither on the
// threads nor on the rest of the batch. What is expanded stays in float32, what is filtered is of the maps'
// type.
template <typename T>
void RunInvertedResidualCpu(const InvertedResidualProblem& problem, CpuIsa isa, const Parallel& parallel,
                            std::byte* workspace);

}  // namespace saccade::kernels
