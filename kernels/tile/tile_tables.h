// The loops of each instruction set, for tile.cc.
#pragma once

#include "kernels/tile/tile.h"

namespace saccade::kernels {

const TileCode<float>& PortableTileCode();
#if defined(__x86_64__)
const TileCode<float>& Avx2TileCode();
const TileCode<float>& Avx512TileCode();
#endif
const TileCode<double>& DoubleTileCode();

}  // namespace saccade::kernels
