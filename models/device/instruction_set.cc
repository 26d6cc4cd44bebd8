#include "models/device/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/cuda_plugin.h"

namespace saccade::models {
namespace {

// oneDNN reads its variable under two names, the first one first.
constexpr const char* kOneDnnVariables[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
constexpr const char* kLimitVariables[] = {kernels::kCpuIsaVariable, "ATEN_CPU_CAPABILITY",
                                           kOneDnnVariables[0], kOneDnnVariables[1]};
// The values that keep oneDNN from AMX. It ignores values that it does not know.
constexpr std::string_view kSetsWithoutAmx[] = {"SSE41",
                                                "AVX",
                                                "AVX2",
                                                "AVX2_VNNI",
                                                "AVX2_VNNI_2",
                                                "AVX512_CORE",
                                                "AVX512_CORE_VNNI",
                                                "AVX512_CORE_BF16",
                                                "AVX512_CORE_FP16",
                                                "AVX10_1_512",
                                                "AVX10_2_512"};

bool IsWordOfAVariable(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

const char* Environment(const char* variable) { return std::getenv(variable); }

// Whether oneDNN's kernels for AMX run here: the processor has what they use, and the system lets this
// process use it. The system is asked for that permission as oneDNN does before its first such kernel.
bool HasAmx() {
#if defined(__x86_64__)
  constexpr unsigned kTileBfloat16 = 1U << 22;
  constexpr unsigned kTile = 1U << 24;
  constexpr unsigned kTileInt8 = 1U << 25;
  constexpr unsigned kAll = kTileBfloat16 | kTile | kTileInt8;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kAll) != kAll) return false;
  // From asm/prctl.h, which is older than these on some systems.
  constexpr int64_t kGetPermission = 0x1022;
  constexpr int64_t kRequestPermission = 0x1023;
  constexpr uint64_t kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return false;
  uint64_t permitted = 0;
  return syscall(SYS_arch_prctl, kGetPermission, &permitted) == 0 && (permitted >> kTileData & 1) != 0;
#else
  return false;
#endif
}

}  // namespace

std::string InstructionSetText(const InstructionFeatures& features) {
  std::string text(features.isa);
  if (features.bfloat16) text += "+bf16";
  if (features.int8) text += "+vnni";
  if (features.amx) text += "+amx";
  return text;
}

bool LimitAllowsAmx(const std::function<const char*(const char*)>& value_of) {
  for (const char* const variable : kOneDnnVariables) {
    const char* const value = value_of(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name(value);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return std::find(std::begin(kSetsWithoutAmx), std::end(kSetsWithoutAmx), name) ==
           std::end(kSetsWithoutAmx);
  }
  return true;
}

const std::string& InstructionSet() {
  static const std::string name = InstructionSetText({.isa = kernels::CpuIsaName(kernels::BestCpuIsa()),
                                                      .bfloat16 = kernels::MultipliesBFloat16(),
                                                      .int8 = kernels::MultipliesInt8(),
                                                      .amx = LimitAllowsAmx(Environment) && HasAmx()}) +
                                  LimitsOfInstructionSet(Environment);
  return name;
}

std::string LimitsOfInstructionSet(const std::function<const char*(const char*)>& value_of) {
  std::string text;
  for (const char* const variable : kLimitVariables) {
    const char* const value = value_of(variable);
    if (value != nullptr && IsWordOfAVariable(value)) text += std::string(" ") + variable + "=" + value;
  }
  return text;
}

std::string InstructionSetOfGpus(const std::vector<int>& gpus) {
  const std::vector<std::string>& all = kernels::LoadCudaPlugin().names;
  std::vector<std::string> names;
  for (const int gpu : gpus) {
    if (gpu >= 0 && static_cast<size_t>(gpu) < all.size()) names.push_back(all[static_cast<size_t>(gpu)]);
  }
  return CudaInstructionSet(names);
}

std::string CudaInstructionSet(const std::vector<std::string>& names) {
  std::string text = "cuda";
  const char* before = " ";
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    if (name.empty()) continue;
    text += before + name;
    before = " + ";
  }
  return text;
}

}  // namespace saccade::models
