#include "kernels/tile/tile_impl.h"

namespace saccade::kernels {

const TileCode<float>& Avx2TileCode() { return avx2::kTileCode<float>; }

}  // namespace saccade::kernels
