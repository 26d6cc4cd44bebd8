#include "kernels/tile/tile_impl.h"

namespace saccade::kernels {

const TileCode<float>& PortableTileCode() { return portable::kTileCode<float>; }
const TileCode<double>& DoubleTileCode() { return portable::kTileCode<double>; }

}  // namespace saccade::kernels
