#include "kernels/common/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace saccade::kernels {
namespace {

#if defined(__x86_64__)
// VNNI on registers of 256 bits. clang 16 has no name for it in __builtin_cpu_supports().
bool HasAvxVnni() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kAvxVnni = 1U << 4;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
}
#endif

}  // namespace

CpuIsa BestCpuIsa() {
#if defined(__x86_64__)
  static const CpuIsa best = [] {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx2 && avx512 ? CpuIsa::kAvx512 : avx2 ? CpuIsa::kAvx2 : CpuIsa::kPortable;
  }();
  return best;
#else
  return CpuIsa::kPortable;
#endif
}

bool MultipliesBFloat16() {
#if defined(__x86_64__)
  static const bool multiplies = BestCpuIsa() == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0;
  return multiplies;
#else
  return false;
#endif
}

bool MultipliesInt8() {
#if defined(__x86_64__)
  static const bool multiplies =
      (BestCpuIsa() == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512vnni") != 0) ||
      (BestCpuIsa() == CpuIsa::kAvx2 && HasAvxVnni());
  return multiplies;
#else
  return false;
#endif
}

std::string_view CpuIsaName(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kPortable:
      break;
  }
  return "portable";
}

}  // namespace saccade::kernels
