#include "server/decode/voxels.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little, "voxels are read as they lie in memory");

template <typename T>
void Widen(const char* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<float>(value);
  }
}

}  // namespace

size_t BytesOf(VoxelType type) {
  if (type == VoxelType::kUint8) return 1;
  return type == VoxelType::kUint16 ? 2 : 4;
}

void ToFloats(VoxelType type, const char* from, size_t count, float* to) {
  switch (type) {
    case VoxelType::kUint8:
      return Widen<uint8_t>(from, count, to);
    case VoxelType::kUint16:
      return Widen<uint16_t>(from, count, to);
    case VoxelType::kFloat32:
      return Widen<float>(from, count, to);
  }
}

}  // namespace saccade::server
