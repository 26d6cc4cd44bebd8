// Instruction sets of the CPU kernels. Every kernel is compiled once per set, in its own translation unit,
// and the best set that the processor supports is selected at run time.
#pragma once

#include <string_view>

namespace saccade::kernels {

enum class CpuIsa { kPortable, kAvx2, kAvx512 };

// Returns the best set that this processor and this build support. Constant within a process; thread-safe.
CpuIsa BestCpuIsa();

// Returns "portable", "avx2" or "avx512". torch.ops.saccade.cpu_isa() returns the name of the set in use.
std::string_view CpuIsaName(CpuIsa isa);

// Whether this processor multiplies bfloat16 itself (AVX-512 BF16), so that it is faster than float32.
// Constant within a process; thread-safe.
bool MultipliesBFloat16();

// Whether this processor sums products of bytes itself (AVX-512 VNNI or AVX-VNNI), so that they are faster
// than float32. Constant within a process; thread-safe.
bool MultipliesInt8();

}  // namespace saccade::kernels
