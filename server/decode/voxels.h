// Voxels of any type as floats.
#pragma once

#include <cstddef>

#include "server/core/request.h"

namespace saccade::server {

// One voxel's.
size_t BytesOf(VoxelType type);

// `from` is little-endian, and need not be aligned.
void ToFloats(VoxelType type, const char* from, size_t count, float* to);

}  // namespace saccade::server
