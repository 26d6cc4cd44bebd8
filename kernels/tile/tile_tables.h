// The loops of each instruction set, for tile.cc.
#pragma once

#include "kernels/tile/tile.h"

namespace saccade::kernels {

const TileCode<float>& PortableTileCode();
#if defined(__x86_64__)
const TileCode<float>& Avx2TileCode();
const TileCode<float>& Avx512TileCode();
// The same with products in bfloat16, for processors with AVX-512 BF16.
const TileCode<float>& Avx512BFloat16TileCode();
#endif
const TileCode<double>& DoubleTileCode();

}  // namespace saccade::kernels
