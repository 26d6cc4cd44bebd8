// RoIAlign on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunRoiAlignCpu needs for this problem on at most `threads` threads.
// Reads the regions, whose samples must exist.
template <typename T>
size_t RoiAlignCpuWorkspaceBytes(const RoiAlignProblem& problem, int threads);

// Computes problem.out. T is float, BFloat16 or double (double ignores `isa` and uses the portable code). The
// caller owns the workspace, which is aligned as by new and may be uninitialised. Blocks until done; does not
// allocate. A bin's value depends on its region and channel alone.
template <typename T>
void RunRoiAlignCpu(const RoiAlignProblem& problem, CpuIsa isa, const Parallel& parallel,
                    std::byte* workspace);

}  // namespace saccade::kernels
