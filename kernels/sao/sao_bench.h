#pragma once

#include <vector>

#include "kernels/common/bench.h"

namespace saccade::kernels {

// The paper's three sizes, batch 1 and 8: float32 in both layouts, bfloat16 channels-last.
void AddSaoBenchmarks(std::vector<BenchCase>* cases);

}  // namespace saccade::kernels
