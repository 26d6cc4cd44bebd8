// The instructions that networks are computed with.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::models {

// What InstructionSet() names of a machine.
struct InstructionFeatures {
  std::string_view isa = "portable";
  bool bfloat16 = false;  // the operators multiply bfloat16
  bool int8 = false;      // the operators sum products of bytes
  bool amx = false;       // oneDNN multiplies tiles (AMX), and rounds differently with them
};
std::string InstructionSetText(const InstructionFeatures& features);

// Whether the environment lets oneDNN use AMX where the processor has it: ONEDNN_MAX_CPU_ISA, or else
// DNNL_MAX_CPU_ISA, is unset or names a set that has it. `value_of` returns the value of a variable, as
// getenv() does.
bool LimitAllowsAmx(const std::function<const char*(const char*)>& value_of);

// "portable", "avx2" or "avx512", followed by "+bf16", "+vnni" and "+amx" if this machine has instructions
// for those and the system permits them, and by the environment variables that limit it: "avx2
// SACCADE_CPU_ISA=avx2". Sums are rounded differently where it differs. Constant within a process.
const std::string& InstructionSet();

// The variables that limit the instructions of the operators, of ATen and of oneDNN, each with a space before
// it. One alone leaves the others' instructions as they are, so no set of a processor is what it computes
// with. Variables that are unset, empty or no name of letters, digits and underscores are left out: they
// limit nothing. `value_of` returns the value of a variable, as getenv() does.
std::string LimitsOfInstructionSet(const std::function<const char*(const char*)>& value_of);

// "cuda", followed by the kinds of these GPUs: "cuda NVIDIA H200 sm_90". CUDA's libraries choose their
// algorithms by the GPU, so sums are rounded differently where it differs.
std::string InstructionSetOfGpus(const std::vector<int>& gpus);
// The same of GPUs with these names; empty names are left out.
std::string CudaInstructionSet(const std::vector<std::string>& names);

}  // namespace saccade::models
