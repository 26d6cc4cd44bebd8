#include "models/device/instruction_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <string_view>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/cuda_plugin.h"

namespace saccade::models {
namespace {

// oneDNN reads its variable under two names.
constexpr const char* kLimitVariables[] = {kernels::kCpuIsaVariable, "ATEN_CPU_CAPABILITY",
                                           "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

bool IsWordOfAVariable(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

const std::string& InstructionSet() {
  static const std::string name = [] {
    std::string text(kernels::CpuIsaName(kernels::BestCpuIsa()));
    if (kernels::MultipliesBFloat16()) text += "+bf16";
    if (kernels::MultipliesInt8()) text += "+vnni";
    return text + LimitsOfInstructionSet([](const char* variable) { return std::getenv(variable); });
  }();
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
