// The product of bfloat16 blocks by oneDNN, which uses AMX where the processor has it.
#pragma once

#include "kernels/tile/bfloat16_product.h"

namespace saccade::kernels {

// oneDNN's product by LibTorch's brgemm. It needs AVX-512, and throws without it.
void BFloat16ProductOfOneDnn(int64_t rows, int64_t columns, int64_t depth, const uint32_t* a,
                             const uint32_t* b, float* c);

}  // namespace saccade::kernels
