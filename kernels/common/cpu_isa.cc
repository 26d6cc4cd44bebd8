#include "kernels/common/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

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

// What this processor and this build support.
CpuIsa SupportedCpuIsa() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx2 && avx512 ? CpuIsa::kAvx512 : avx2 ? CpuIsa::kAvx2 : CpuIsa::kPortable;
#else
  return CpuIsa::kPortable;
#endif
}

// The limit of the environment. Throws as CpuIsaLimitOf() does.
const CpuIsaLimit& Limit() {
  static const CpuIsaLimit limit = [] {
    const char* const name = std::getenv(kCpuIsaVariable);
    return name == nullptr || *name == '\0' ? CpuIsaLimit() : CpuIsaLimitOf(name);
  }();
  return limit;
}

}  // namespace

CpuIsaLimit CpuIsaLimitOf(std::string_view name) {
  if (name == "portable") return {CpuIsa::kPortable, false, false, false};
  if (name == "avx2") return {CpuIsa::kAvx2, false, false, false};
  if (name == "avx512") return {CpuIsa::kAvx512, false, false, false};
  if (name == "avx512_bf16") return {CpuIsa::kAvx512, true, true, false};
  throw std::invalid_argument(std::string(kCpuIsaVariable) + " is '" + std::string(name) +
                              "'; expected portable, avx2, avx512 or avx512_bf16. Unset it to use everything "
                              "that the processor has");
}

CpuIsa BestCpuIsa() {
  static const CpuIsa best = std::min(SupportedCpuIsa(), Limit().isa);
  return best;
}

bool MultipliesBFloat16() {
#if defined(__x86_64__)
  static const bool multiplies =
      BestCpuIsa() == CpuIsa::kAvx512 && Limit().bfloat16 && __builtin_cpu_supports("avx512bf16") != 0;
  return multiplies;
#else
  return false;
#endif
}

bool MultipliesInt8() {
#if defined(__x86_64__)
  static const bool multiplies =
      Limit().int8 && ((BestCpuIsa() == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512vnni") != 0) ||
                       (BestCpuIsa() == CpuIsa::kAvx2 && HasAvxVnni()));
  return multiplies;
#else
  return false;
#endif
}

bool MayUseAmx() { return Limit().amx; }

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
