// Non-maximum suppression on the CPU, without LibTorch and its threads.
#pragma once

#include <cstddef>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/parallel.h"
#include "kernels/nms/nms_problem.h"

namespace saccade::kernels {

// Returns the bytes of workspace that RunNmsCpu needs for this problem.
template <typename A>
size_t NmsCpuWorkspaceBytes(const NmsProblem& problem);

// Computes problem.out and problem.out_count. A is float or double (double ignores `isa`); at most 2^31 - 1
// boxes. The caller owns the workspace, which is aligned as by new and may be uninitialised. Blocks until
// done; does not allocate.
template <typename A>
void RunNmsCpu(const NmsProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace);

}  // namespace saccade::kernels
