// Which instruction set the CPU kernels run on. Every kernel is compiled once per set, in a translation unit
// of its own, and the best one that this processor has is taken at run time.
#pragma once

#include <string_view>

namespace saccade::kernels {

enum class CpuIsa { kPortable, kAvx2, kAvx512 };

// The best set that this processor and this build both have. Constant through a process; any thread may ask.
CpuIsa BestCpuIsa();

// "portable", "avx2", "avx512". Also torch.ops.saccade.cpu_isa() for the one in use.
std::string_view CpuIsaName(CpuIsa isa);

}  // namespace saccade::kernels
