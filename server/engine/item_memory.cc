#include "server/engine/item_memory.h"

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats) {
  std::unique_ptr<float[]> room(new (std::nothrow) float[floats]);
  if (room != nullptr) return room;
  absl::Status refused =
      OutOfMemory("out of memory for the network's input; try again later or send a smaller one");
  SetShedReason(refused, ShedReason::kDecodedBytes);
  return refused;
}

absl::Status ChargeWriting(ItemSink& sink, const DecodedPicture& picture, const models::ImageInput& input,
                           const models::Placement& placement, int64_t& charged) {
  const int64_t bytes = WriteInputBytes(picture, input, placement);
  if (bytes <= std::max(charged, kMaxFreeWriteBytes)) return absl::OkStatus();
  absl::Status taken = sink.AddDecodedBytes(bytes - charged);
  if (taken.ok()) charged = bytes;
  return taken;
}

absl::Status CheckMaps(const PictureHeader& header, ResultMap map) {
  if (!header.by_regions || map == ResultMap::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the picture is ", header.width, " x ", header.height,
                   " pixels large, and the model's answer would be a map of that size; send the part that is "
                   "wanted as a picture of its own"));
}

}  // namespace saccade::server
