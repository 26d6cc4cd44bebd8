// Serialises restored volumes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"
#include "server/core/request.h"

namespace saccade::server {

// Little-endian voxels, plane by plane and row by row. Integers are rounded to nearest and clamped to the
// range of their type. INTERNAL if the number of values does not match the size.
absl::StatusOr<std::string> VoxelBytes(const models::Restoration& result, VoxelType type);

}  // namespace saccade::server
