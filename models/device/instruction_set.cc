#include "models/device/instruction_set.h"

#include <cstddef>
#include <set>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/cuda_plugin.h"

namespace saccade::models {

const std::string& InstructionSet() {
  static const std::string name = [] {
    std::string text(kernels::CpuIsaName(kernels::BestCpuIsa()));
    if (kernels::MultipliesBFloat16()) text += "+bf16";
    if (kernels::MultipliesInt8()) text += "+vnni";
    return text;
  }();
  return name;
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
