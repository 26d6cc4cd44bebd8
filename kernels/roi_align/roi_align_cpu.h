// RoIAlign on the CPU, below tensors: knows neither LibTorch nor its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// Bytes of workspace that RunRoiAlignCpu needs for this problem on at most `threads` threads. Reads the
// regions, whose samples must exist.
template <typename T>
size_t RoiAlignCpuWorkspaceBytes(const RoiAlignProblem& problem, int threads);

// Computes problem.out. T is float, BFloat16 or double (double ignores `isa` and runs the portable code).
// The workspace is the caller's, aligned as by new, and may hold anything. Blocks until done; allocates
// nothing. What a bin holds depends on its own region and channel alone.
template <typename T>
void RunRoiAlignCpu(const RoiAlignProblem& problem, CpuIsa isa, const Parallel& parallel,
                    std::byte* workspace);

}  // namespace saccade::kernels
