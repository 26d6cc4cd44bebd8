#include "kernels/tile/tile_impl.h"

namespace saccade::kernels {

const TileCode<float>& Avx512TileCode() { return avx512::kTileCode<float>; }

}  // namespace saccade::kernels
