// Converts a volume as sent to floats, from a TIFF with one plane per page or from raw voxels.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/request.h"

namespace saccade::server {

// Maximum extent of each dimension of a volume.
inline constexpr int64_t kMaxVolumeSide = 65535;

struct VolumeHeader {
  int64_t depth = 0;
  int64_t height = 0;
  int64_t width = 0;
  VoxelType type = VoxelType::kFloat32;

  int64_t voxels() const { return depth * height * width; }
};

// INVALID_ARGUMENT, stating the volume's size and the limit, if there are more than `max_voxels` voxels or a
// dimension exceeds kMaxVolumeSide. REQUIRES: all dimensions are positive.
absl::Status CheckVoxels(const VolumeHeader& header, int64_t max_voxels);

// INVALID_ARGUMENT, stating both sizes and the limit, if the volume has more than `input.max_voxels` voxels
// once the model has padded it. REQUIRES: CheckVoxels() has accepted it.
absl::Status CheckPaddedVoxels(const VolumeHeader& header, const models::VolumeInput& input);

// Reads what `volume` claims to be, without decoding it. INVALID_ARGUMENT if it is not a TIFF, if its pages
// differ, if ImageJ's description names more images than it has pages, if it is too large, or if the number
// of raw bytes does not match the shape. `wanted` is asked before each page, if it is not null, and its error
// is returned. Thread-safe.
absl::StatusOr<VolumeHeader> ReadVolumeHeader(const Picture& volume, int64_t max_voxels,
                                              const std::function<absl::Status()>& wanted = nullptr);

// Writes all voxels, plane by plane. REQUIRES: `header` was read from `volume`, and `out` has room for
// exactly its voxels. Slow: call it on the decode pool. INVALID_ARGUMENT if the data is damaged. `wanted`
// as above. Thread-safe.
absl::Status WriteVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out,
                         const std::function<absl::Status()>& wanted = nullptr);

}  // namespace saccade::server
