// Converts voxels of any type to floats.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/core/request.h"

namespace saccade::server {

// Bytes per voxel.
size_t BytesOf(VoxelType type);

// Converts all voxels of `from`, which are little-endian and need not be aligned. `to` must have room for
// them.
void ToFloats(VoxelType type, std::string_view from, float* to);

}  // namespace saccade::server
