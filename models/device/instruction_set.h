// The instructions that networks on the CPU are computed with.
#pragma once

#include <string>

namespace saccade::models {

// "portable", "avx2" or "avx512", followed by "+bf16" and "+vnni" if this machine has instructions for those.
// Sums are rounded differently where it differs.
const std::string& InstructionSet();

}  // namespace saccade::models
