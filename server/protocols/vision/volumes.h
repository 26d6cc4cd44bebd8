// Volumes in saccade.v1 messages.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/request.h"

namespace saccade::server {

// nullopt if the type is unspecified or unknown.
std::optional<VoxelType> TypeOf(v1::VolumeShape::Type type);
v1::VolumeShape::Type TypeOf(VoxelType type);

// INVALID_ARGUMENT if the shape is invalid, or if its voxels do not take `bytes` bytes. `field` is the
// client's name for the volume.
absl::Status CheckShape(absl::string_view field, const v1::VolumeShape& shape, int64_t bytes);

// Requires exactly as many voxels as the shape has. Errors as CheckShape().
absl::StatusOr<RawVolume> FromRawVolume(absl::string_view field, const v1::VolumeShape& shape,
                                        absl::string_view voxels);

}  // namespace saccade::server
