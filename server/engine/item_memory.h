// Memory of items of all kinds, and how it is charged to the request.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decode/prepare.h"
#include "server/engine/item_sink.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// Decoded bytes charged for a picture of three channels.
constexpr int64_t PictureBytes(int64_t pixels) { return 3 * pixels; }
// Decoded bytes charged for the floats of a network's input.
constexpr int64_t FloatBytes(int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); }

// What the results have for each pixel of the picture.
enum class ResultMap { kNone, kLabels, kFloats };
// Bytes for each pixel of such a map and of its encoding.
constexpr int64_t MapBytes(ResultMap map) {
  if (map == ResultMap::kNone) return 0;
  return map == ResultMap::kLabels ? 2 : 8;
}

// Allocates `floats` uninitialised floats. RESOURCE_EXHAUSTED if memory is insufficient.
absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats);

// The memory of WriteInput() up to this many bytes is not charged. Most pictures take far less.
inline constexpr int64_t kMaxFreeWriteBytes = 1 << 20;

// Charges for the memory that WriteInput() takes for `picture`, as far as it is more than `charged`, which is
// then raised. Call it before WriteInput(), with the same `charged` for all pictures of an item, because they
// are written one after the other.
absl::Status ChargeWriting(ItemSink& sink, const DecodedPicture& picture, const models::ImageInput& input,
                           const models::Placement& placement, int64_t& charged);

// INVALID_ARGUMENT if the answer would be a map of a picture that is too large to be decoded whole.
absl::Status CheckMaps(const PictureHeader& header, ResultMap map);

}  // namespace saccade::server
