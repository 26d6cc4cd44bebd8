// The instructions that networks are computed with.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace saccade::models {

// "portable", "avx2" or "avx512", followed by "+bf16" and "+vnni" if this machine has instructions for those,
// and by the environment variables that limit it: "avx2 SACCADE_CPU_ISA=avx2". Sums are rounded differently
// where it differs. Constant within a process.
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
