#include "server/encode/volume.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little, "voxels are sent as they lie in memory");

template <typename T>
std::string Rounded(const std::vector<float>& values) {
  constexpr auto kMax = static_cast<float>(std::numeric_limits<T>::max());
  std::string bytes(values.size() * sizeof(T), '\0');
  auto* to = reinterpret_cast<T*>(bytes.data());
  // A NaN has no integer: it becomes 0.
  for (const float value : values)
    *to++ = std::isnan(value) ? T{0} : static_cast<T>(std::clamp(std::nearbyint(value), 0.0F, kMax));
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> VoxelBytes(const models::Restoration& result, VoxelType type) {
  const int64_t voxels = result.depth * result.height * result.width;
  if (voxels < 1 || static_cast<int64_t>(result.values.size()) != voxels) {
    return absl::InternalError(absl::StrCat("a volume of ", result.depth, " x ", result.height, " x ",
                                            result.width,
                                            " voxels has a wrong number of values: ", result.values.size()));
  }
  switch (type) {
    case VoxelType::kUint8:
      return Rounded<uint8_t>(result.values);
    case VoxelType::kUint16:
      return Rounded<uint16_t>(result.values);
    case VoxelType::kFloat32:
      break;
  }
  return std::string(reinterpret_cast<const char*>(result.values.data()),
                     result.values.size() * sizeof(float));
}

}  // namespace saccade::server
