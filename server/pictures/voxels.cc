#include "server/pictures/voxels.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little, "voxels are read as they lie in memory");

template <typename T>
void Widen(std::string_view from, float* to) {
  for (; from.size() >= sizeof(T); from.remove_prefix(sizeof(T))) {
    T value;
    std::memcpy(&value, from.begin(), sizeof(T));
    *to++ = static_cast<float>(value);
  }
}

}  // namespace

size_t BytesOf(VoxelType type) {
  if (type == VoxelType::kUint8) return 1;
  return type == VoxelType::kUint16 ? 2 : 4;
}

void ToFloats(VoxelType type, std::string_view from, float* to) {
  switch (type) {
    case VoxelType::kUint8:
      return Widen<uint8_t>(from, to);
    case VoxelType::kUint16:
      return Widen<uint16_t>(from, to);
    case VoxelType::kFloat32:
      return Widen<float>(from, to);
  }
}

}  // namespace saccade::server
