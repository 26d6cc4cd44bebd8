#include "server/engine/tensor_items.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/decode/volume.h"
#include "server/engine/item_memory.h"

namespace saccade::server {
namespace {

int64_t Area(models::Size size) { return size.height * size.width; }

absl::Status WrongShape(const TensorInput& tensor, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("input 'image': the shape is [",
                                                 absl::StrJoin(tensor.shape, ","), "], expected ", expected));
}

absl::Status CheckPictures(const TensorInput& tensor, const models::ImageInput& input) {
  const auto& shape = tensor.shape;
  const bool fixed = models::IsFixedSize(input);
  const bool pictures = shape.size() == 4 && shape[1] == input.channels() && shape[2] >= 1 && shape[3] >= 1;
  if (!pictures || (fixed && (shape[2] != input.height || shape[3] != input.width))) {
    return WrongShape(tensor, absl::StrCat("[n,", input.channels(), ",",
                                           fixed ? absl::StrCat(input.height, ",", input.width, "]")
                                                 : "h,w] with h and w at least 1"));
  }
  const models::Size size{shape[2], shape[3]};
  if (size.height % input.multiple != 0 || size.width % input.multiple != 0) {
    return WrongShape(
        tensor, absl::StrCat("[n,", input.channels(), ",h,w] with h and w multiples of ", input.multiple));
  }
  if (PlaceTensor(input, shape).scaled == size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input 'image': the shape is [", absl::StrJoin(shape, ","), "], too large: no side may be ", "above ",
      input.long_side, ", and the buckets are ", models::AsText(input.buckets),
      " (height x width); tensors are not scaled, so scale it down or send the picture itself"));
}

absl::Status CheckClips(const TensorInput& tensor, const models::ImageInput& input) {
  const auto& shape = tensor.shape;
  const int64_t max = input.clip.max_frames;
  if (shape.size() == 5 && shape[1] >= 1 && shape[1] <= max && shape[2] == input.channels() &&
      shape[3] == input.height && shape[4] == input.width) {
    return absl::OkStatus();
  }
  return WrongShape(tensor, absl::StrCat("[n,frames,", input.channels(), ",", input.height, ",", input.width,
                                         "] with 1 to ", max, " frames"));
}

absl::Status CheckVolumes(const TensorInput& tensor, const models::ImageInput& input) {
  const auto& shape = tensor.shape;
  if (shape.size() != 5 || shape[1] != 1 || shape[2] < 1 || shape[3] < 1 || shape[4] < 1)
    return WrongShape(tensor, "[n,1,d,h,w] with d, h and w at least 1");
  const VolumeHeader header{.depth = shape[2], .height = shape[3], .width = shape[4]};
  absl::Status fits = CheckVoxels(header, input.volume.max_voxels);
  if (fits.ok()) fits = CheckPaddedVoxels(header, input.volume);
  if (fits.ok()) return fits;
  return absl::Status(fits.code(), absl::StrCat("input 'image': ", fits.message()));
}

}  // namespace

models::Placement PlaceTensor(const models::ImageInput& input, const std::vector<int64_t>& shape) {
  const models::Size size{*(shape.end() - 2), shape.back()};
  if (input.medium == models::Medium::kVolume) return models::PlacementOfVolume(size, shape[2]);
  models::ImageInput unscaled = input;
  unscaled.short_side = 0;
  unscaled.exact_short_side = false;
  unscaled.either_side = false;
  const int64_t frames = input.medium == models::Medium::kClip ? shape[1] : 1;
  models::Placement placement = models::PlacementOfClip(unscaled, size, frames);
  // The client has already scaled and cropped the tensor.
  if (models::IsFixedSize(input)) placement.sent = placement.scaled;
  return placement;
}

absl::Status CheckTensor(const TensorInput& tensor, const models::ImageInput& input) {
  switch (input.medium) {
    case models::Medium::kPictures:
      return CheckPictures(tensor, input);
    case models::Medium::kClip:
      return CheckClips(tensor, input);
    case models::Medium::kVolume:
      return CheckVolumes(tensor, input);
  }
  return absl::InternalError("the kind of the model's input is unknown; this is a bug in saccaded");
}

absl::Status MakeTensorItems(ItemSink& sink, const TensorInput& tensor, const models::ImageInput& input) {
  const models::Placement placement = PlaceTensor(input, tensor.shape);
  const int64_t floats = placement.sent_depth * input.channels() * Area(placement.scaled);
  const int64_t padded = placement.depth * input.channels() * Area(placement.bucket);
  PieceReader reader(tensor.data);
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    if (padded != floats || input.medium == models::Medium::kVolume) {
      if (absl::Status taken = sink.AddDecodedBytes(FloatBytes(padded)); !taken.ok()) return taken;
    }
    Item item{.placement = placement, .pixels = {}};
    reader.Take(floats * sizeof(float), item.pixels);
    sink.AddItem(std::move(item));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
