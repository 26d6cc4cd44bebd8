#include "models/device/instruction_set.h"

#include "kernels/common/cpu_isa.h"

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

}  // namespace saccade::models
