// The instructions that networks are computed with.
#pragma once

#include <string>
#include <vector>

namespace saccade::models {

// "portable", "avx2" or "avx512", followed by "+bf16" and "+vnni" if this machine has instructions for those.
// Sums are rounded differently where it differs.
const std::string& InstructionSet();

// "cuda", followed by the kinds of these GPUs: "cuda NVIDIA H200 sm_90". CUDA's libraries choose their
// algorithms by the GPU, so sums are rounded differently where it differs.
std::string InstructionSetOfGpus(const std::vector<int>& gpus);
// The same of GPUs with these names; empty names are left out.
std::string CudaInstructionSet(const std::vector<std::string>& names);

}  // namespace saccade::models
