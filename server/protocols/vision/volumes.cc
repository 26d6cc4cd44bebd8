#include "server/protocols/vision/volumes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/decode/volume.h"
#include "server/pictures/voxels.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {

std::optional<VoxelType> TypeOf(v1::VolumeShape::Type type) {
  switch (type) {
    case v1::VolumeShape::UINT8:
      return VoxelType::kUint8;
    case v1::VolumeShape::UINT16:
      return VoxelType::kUint16;
    case v1::VolumeShape::FLOAT32:
      return VoxelType::kFloat32;
    default:
      return std::nullopt;
  }
}

v1::VolumeShape::Type TypeOf(VoxelType type) {
  switch (type) {
    case VoxelType::kUint8:
      return v1::VolumeShape::UINT8;
    case VoxelType::kUint16:
      return v1::VolumeShape::UINT16;
    case VoxelType::kFloat32:
      break;
  }
  return v1::VolumeShape::FLOAT32;
}

absl::Status CheckShape(absl::string_view field, const v1::VolumeShape& shape, int64_t bytes) {
  const std::string sides = absl::StrCat(shape.depth(), " x ", shape.height(), " x ", shape.width());
  for (const int side : {shape.depth(), shape.height(), shape.width()}) {
    if (side >= 1 && side <= kMaxVolumeSide) continue;
    return InvalidField(
        absl::StrCat(field, ".shape"),
        absl::StrCat("is ", sides, " (depth x height x width); expected sides of 1 to ", kMaxVolumeSide));
  }
  const auto type = TypeOf(shape.type());
  if (!type)
    return InvalidField(absl::StrCat(field, ".shape.type"), "is not set; expected UINT8, UINT16 or FLOAT32");
  const auto voxel = static_cast<int64_t>(BytesOf(*type));
  const int64_t expected = int64_t{shape.depth()} * shape.height() * shape.width() * voxel;
  if (bytes == expected) return absl::OkStatus();
  return InvalidField(absl::StrCat(field, ".voxels"),
                      absl::StrCat("takes ", bytes, " bytes; ", sides, " voxels of ", voxel,
                                   voxel == 1 ? " byte" : " bytes", " are ", expected));
}

absl::StatusOr<RawVolume> FromRawVolume(absl::string_view field, const v1::VolumeShape& shape,
                                        absl::string_view voxels) {
  if (absl::Status fits = CheckShape(field, shape, static_cast<int64_t>(voxels.size())); !fits.ok())
    return fits;
  return RawVolume{.depth = shape.depth(),
                   .height = shape.height(),
                   .width = shape.width(),
                   .type = *TypeOf(shape.type()),
                   .data = {.owner = nullptr, .bytes = {voxels.data(), voxels.size()}}};
}

}  // namespace saccade::server
