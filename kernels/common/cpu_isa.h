// Instruction sets of the CPU kernels. Every kernel is compiled once per set, in its own translation unit,
// and the best set that the processor supports is selected at run time.
#pragma once

#include <string_view>

namespace saccade::kernels {

enum class CpuIsa { kPortable, kAvx2, kAvx512 };

// The environment variable with the name of the limit below. If it is unset or empty, there is no limit.
inline constexpr char kCpuIsaVariable[] = "SACCADE_CPU_ISA";

// The most that the kernels may use, whatever the processor has.
struct CpuIsaLimit {
  CpuIsa isa = CpuIsa::kAvx512;
  // Whether they may use the instructions that multiply bfloat16.
  bool bfloat16 = true;
  // Whether they may use the instructions that sum products of bytes (VNNI).
  bool int8 = true;
  // Whether they may use AMX, which came after all of these.
  bool amx = true;
};

// Returns the limit of this name: "portable", "avx2", "avx512" (these three without the instructions for
// bfloat16 and bytes, as on the first processors that had the set) or "avx512_bf16" (with both). None of
// them permits AMX. Throws std::invalid_argument, with the known names, if there is none.
CpuIsaLimit CpuIsaLimitOf(std::string_view name);

// Returns the best set that this processor and this build support, within the limit of the environment.
// Throws std::invalid_argument if kCpuIsaVariable is no name of a limit; so do the functions below.
// Constant within a process; thread-safe.
CpuIsa BestCpuIsa();

// Returns "portable", "avx2" or "avx512". torch.ops.saccade.cpu_isa() returns the name of the set in use.
std::string_view CpuIsaName(CpuIsa isa);

// Whether this processor multiplies bfloat16 itself (AVX-512 BF16) within the limit, so that it is faster
// than float32. Constant within a process; thread-safe.
bool MultipliesBFloat16();

// Whether this processor sums products of bytes itself within the limit (AVX-512 VNNI or, below AVX-512,
// AVX-VNNI), so that they are faster than float32. Constant within a process; thread-safe.
bool MultipliesInt8();

// Whether the limit permits AMX; the processor may lack it. Constant within a process; thread-safe.
bool MayUseAmx();

}  // namespace saccade::kernels
