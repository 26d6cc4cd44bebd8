// Products of blocks in bfloat16 by code that multiplies whole matrices, as AMX does. Such code comes from a
// library (brgemm/brgemm.cc); this header depends on none.
#pragma once

#include <cstdint>

#include "kernels/tile/tile.h"

namespace saccade::kernels {

// The largest block: rows of a, columns of b, and terms of a sum.
inline constexpr int64_t kBlockSide = 64;
inline constexpr int64_t kBlockDepth = 256;
// Rows and columns of a block are multiples of the first, the terms of a sum of the second, so that few
// different sizes occur.
inline constexpr int64_t kBlockStep = 16;
inline constexpr int64_t kBlockDepthStep = 32;

// c = a b for one block. An entry of a and b is a pair of neighbouring terms of a sum in bfloat16, the first
// in the lower half: a[row * kBlockDepth / 2 + pair], b[pair * kBlockSide + column]. c[row * kBlockSide +
// column] is float32. All are aligned to 64 bytes. May throw only if it always throws. Thread-safe.
using BFloat16Product = void (*)(int64_t rows, int64_t columns, int64_t depth, const uint32_t* a,
                                 const uint32_t* b, float* c);

// Whether `product` computes what it should: blocks of small whole numbers, whose sums are exact. Returns
// false if it throws.
bool ComputesBlocks(BFloat16Product product);

// Registers the function that TileCodeFor() asks, once, for the product of bfloat16 blocks that this machine
// should use; it returns null for none. It is not asked if the limit of kCpuIsaVariable excludes AMX. Call
// before the first TileCodeFor(), while there is one thread.
void SetBFloat16ProductSource(BFloat16Product (*source)());

#if defined(__x86_64__)
// The loops for maps of bfloat16 on processors with AVX-512 BF16, with products by `product`. There is one
// such product in a process at a time: a call changes it for the results of earlier calls, too.
const TileCode<float>& BlockTileCode(BFloat16Product product);
#endif

}  // namespace saccade::kernels
