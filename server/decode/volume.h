// A volume as it was sent, as floats: from a TIFF, a plane a page, or from voxels as they are.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/core/request.h"

namespace saccade::server {

// Of a volume.
inline constexpr int64_t kMaxVolumeSide = 65535;

struct VolumeHeader {
  int64_t depth = 0;
  int64_t height = 0;
  int64_t width = 0;
  VoxelType type = VoxelType::kFloat32;

  int64_t voxels() const { return depth * height * width; }
};

// INVALID_ARGUMENT, with both sizes, if there are too many, or a side is above kMaxVolumeSide. REQUIRES: all
// sides are positive.
absl::Status CheckVoxels(const VolumeHeader& header, int64_t most_voxels);

// What `volume` claims to be; decodes nothing. INVALID_ARGUMENT if it is no TIFF, its pages differ, it is too
// large, or raw voxels are not as many as their shape takes. Thread-safe.
absl::StatusOr<VolumeHeader> ReadVolumeHeader(const Picture& volume, int64_t most_voxels);

// All voxels, plane by plane. REQUIRES: `header` was read from `volume`, and `out` has room for exactly its
// voxels. Takes its time: call it on the decode pool. INVALID_ARGUMENT for what is damaged. Thread-safe.
absl::Status WriteVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out);

}  // namespace saccade::server
