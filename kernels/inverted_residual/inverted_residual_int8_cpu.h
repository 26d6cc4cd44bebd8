// The inverted residual on maps of bytes on the CPU, without LibTorch and its threads. What is between the
// three layers is in bytes too, a few rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/inverted_residual/inverted_residual_int8_problem.h"

namespace saccade::kernels {

// Whether this processor has the instructions (AVX-512 VNNI), within the limit of SACCADE_CPU_ISA.
bool RunsInt8InvertedResidual();

// Packs `weight`, [outputs][inputs], as PackedInt8Product::data has it, with zeros up to a multiple of 4
// inputs and for the outputs that only fill a vector.
std::vector<int8_t> PackInt8Product(const int8_t* weight, int64_t outputs, int64_t inputs);
// Packs `weight`, [channels][3][3], as PackedInt8Filter::data has it.
std::vector<int8_t> PackInt8Filter(const int8_t* weight, int64_t channels);

// The place in the order of channels of each packed output, or -1 for one that only fills a vector: of a
// product, whose last panel may have less than four vectors, and of a filter, which has whole vectors of
// bytes.
std::vector<int64_t> Int8ProductOrder(int64_t outputs);
std::vector<int64_t> Int8FilterOrder(int64_t channels);

// Returns the bytes of workspace that RunInt8InvertedResidualCpu needs with a Parallel of so many threads.
size_t Int8InvertedResidualCpuWorkspaceBytes(const Int8InvertedResidualProblem& problem, int threads);

// Computes problem.out. The caller owns the workspace, which is aligned as by new and may be uninitialised.
// Blocks until done; does not allocate. Sums are exact and each byte is rounded by itself (Int8Rounding), so
// a sample's bytes depend neither on the threads nor on the rest of the batch.
// REQUIRES: RunsInt8InvertedResidual(), and isa is kAvx512.
void RunInt8InvertedResidualCpu(const Int8InvertedResidualProblem& problem, CpuIsa isa,
                                const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
