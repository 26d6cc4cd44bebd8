// A restored volume as it is sent.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/tasks/result.h"
#include "server/core/request.h"

namespace saccade::server {

// Little-endian voxels, plane by plane and row by row; integers are rounded to the nearest and clipped to
// what their type holds. INTERNAL if the values do not fill the size.
absl::StatusOr<std::string> VoxelBytes(const models::Restoration& result, VoxelType type);

}  // namespace saccade::server
