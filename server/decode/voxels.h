// Voxels of any type as floats.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/core/request.h"

namespace saccade::server {

// One voxel's.
size_t BytesOf(VoxelType type);

// All voxels of `from`, which are little-endian and need not be aligned. `to` has room for them.
void ToFloats(VoxelType type, std::string_view from, float* to);

}  // namespace saccade::server
