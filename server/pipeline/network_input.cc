#include "server/pipeline/network_input.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/decode/prepare.h"

namespace saccade::server {
namespace {

int64_t Area(models::Size size) { return size.height * size.width; }

// Where a tensor's pictures belong. They are in its own coordinates already.
models::Placement PlaceTensor(const models::ImageInput& input, models::Size size) {
  models::ImageInput unscaled = input;
  unscaled.short_side = 0;
  models::Placement placement = models::Place(unscaled, size);
  // A crop is the client's business as well.
  if (input.fit == models::Fit::kCropCentre) placement.sent = placement.scaled;
  return placement;
}

absl::Status CheckTensor(const TensorInput& tensor, const models::ImageInput& input) {
  const auto& shape = tensor.shape;
  const bool crop = input.fit == models::Fit::kCropCentre;
  const bool pictures = shape.size() == 4 && shape[1] == input.channels() && shape[2] >= 1 && shape[3] >= 1;
  if (!pictures || (crop && (shape[2] != input.height || shape[3] != input.width))) {
    const std::string sides =
        crop ? absl::StrCat(input.height, ",", input.width, "]") : "h,w] with h and w at least 1";
    return absl::InvalidArgumentError(absl::StrCat("input 'image': the shape is [", absl::StrJoin(shape, ","),
                                                   "], expected [n,", input.channels(), ",", sides));
  }
  const models::Size size{shape[2], shape[3]};
  if (PlaceTensor(input, size).scaled == size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input 'image': the shape is [", absl::StrJoin(shape, ","), "], too large: no side may be ", "above ",
      input.long_side, ", and the buckets are ", models::AsText(input.buckets),
      " (height x width); tensors are not scaled, so scale it down or send the picture itself"));
}

// In the client's words, which picture an error is about.
absl::Status AtPicture(const absl::Status& status, const Request& request, int64_t item, int64_t view) {
  std::string where = absl::StrCat(std::string(request.input_name), ": ");
  if (request.size() > 1) absl::StrAppend(&where, request.views == 1 ? "picture " : "pair ", item, ": ");
  if (request.views == 2) absl::StrAppend(&where, view == 0 ? "left: " : "right: ");
  return absl::Status(status.code(), absl::StrCat(where, status.message()));
}

// A float of the network's input takes four bytes; what is charged are pixels of three.
absl::Status ChargeInput(PredictCall& call, const models::ImageInput& input, models::Size bucket) {
  return call.ticket().AddPixels(4 * input.views * Area(bucket));
}

// Room for one item, its values not set.
absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats) {
  std::unique_ptr<float[]> room(new (std::nothrow) float[floats]);
  if (room != nullptr) return room;
  return absl::ResourceExhaustedError(
      "out of memory for the network's input; try again later or send a smaller one");
}

// One picture's channels into the top left of the bucket.
void Pad(const char* from, int64_t channels, const models::Placement& placement, float* to) {
  const models::Size size = placement.scaled;
  const models::Size bucket = placement.bucket;
  const size_t row = size.width * sizeof(float);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < bucket.height; ++y, to += bucket.width) {
      const int64_t filled = y < size.height ? size.width : 0;
      if (filled > 0) std::memcpy(to, from, row);
      if (filled > 0) from += row;
      std::fill(to + filled, to + bucket.width, 0.0F);
    }
  }
}

absl::Status MakeTensorItems(PredictCall& call, const TensorInput& tensor, const models::ImageInput& input) {
  const models::Size size{tensor.shape[2], tensor.shape[3]};
  const models::Placement placement = PlaceTensor(input, size);
  const int64_t floats = input.channels() * Area(size);
  const int64_t padded = input.channels() * Area(placement.bucket);
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    const char* const bytes = tensor.data.bytes.data() + i * floats * sizeof(float);
    if (placement.bucket == size) {
      call.AddItem({placement, {reinterpret_cast<const float*>(bytes), static_cast<size_t>(floats)}});
      continue;
    }
    if (absl::Status taken = ChargeInput(call, input, placement.bucket); !taken.ok()) return taken;
    auto room = Allocate(padded);
    if (!room.ok()) return room.status();
    Pad(bytes, input.channels(), placement, room->get());
    const absl::Span<const float> pixels(room->get(), padded);
    call.AddItem({placement, pixels, *std::move(room)});
  }
  return absl::OkStatus();
}

// The pictures of one item.
absl::StatusOr<std::vector<DecodedPicture>> DecodeViews(PredictCall& call, const models::ImageInput& input,
                                                        const DecodeLimits& limits, int64_t item) {
  const Request& request = call.request();
  const auto& pictures = std::get<std::vector<Picture>>(request.input);
  std::vector<DecodedPicture> views;
  for (int64_t view = 0; view < input.views; ++view) {
    const Picture& picture = pictures[item * input.views + view];
    const auto header = ReadHeader(picture, limits);
    if (!header.ok()) return AtPicture(header.status(), request, item, view);
    if (absl::Status taken = call.ticket().AddPixels(header->pixels()); !taken.ok()) return taken;
    auto decoded = DecodePicture(picture, *header, input);
    if (!decoded.ok()) return AtPicture(decoded.status(), request, item, view);
    views.push_back(*std::move(decoded));
  }
  return views;
}

absl::Status CheckPair(const Request& request, const std::vector<DecodedPicture>& views, int64_t item) {
  const models::Size left = views.front().sent;
  const models::Size right = views.back().sent;
  if (left == right) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(request.input_name), ": ", request.size() == 1 ? "" : absl::StrCat("pair ", item, ": "),
      "the left picture is ", left.width, " x ", left.height, " pixels large, the right one ", right.width,
      " x ", right.height, "; both pictures of a stereo pair have to have one size"));
}

absl::Status MakePictureItem(PredictCall& call, const models::ImageInput& input, const DecodeLimits& limits,
                             int64_t item) {
  auto views = DecodeViews(call, input, limits, item);
  if (!views.ok()) return views.status();
  if (absl::Status pair = CheckPair(call.request(), *views, item); !pair.ok()) return pair;
  const models::Size sent = views->front().sent;
  const models::Placement placement = models::Place(input, sent);
  if (absl::Status taken = ChargeInput(call, input, placement.bucket); !taken.ok()) return taken;
  const int64_t floats = 3 * Area(placement.bucket);
  auto room = Allocate(input.views * floats);
  if (!room.ok()) return room.status();
  const absl::Span<float> pixels(room->get(), input.views * floats);
  for (int64_t view = 0; view < input.views; ++view) {
    absl::Status written =
        WriteInput((*views)[view], input, placement, pixels.subspan(view * floats, floats));
    if (!written.ok()) return AtPicture(written, call.request(), item, view);
  }
  call.AddItem({placement, pixels, *std::move(room)});
  call.AddDecoded({static_cast<int>(sent.width), static_cast<int>(sent.height)});
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInput(const Request& request, const std::string& model, const models::ImageInput& input) {
  if (const auto* tensor = std::get_if<TensorInput>(&request.input)) return CheckTensor(*tensor, input);
  if (request.views == input.views) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(request.input_name), ": model '", model, "' ",
      input.views == 2 ? "takes stereo pairs; send left and right" : "takes one picture, not a stereo pair"));
}

bool IsReady(const Request& request, const models::ImageInput& input) {
  const auto* tensor = std::get_if<TensorInput>(&request.input);
  if (tensor == nullptr) return false;
  const models::Size size{tensor->shape[2], tensor->shape[3]};
  return PlaceTensor(input, size).bucket == size;
}

absl::Status MakeItems(PredictCall& call, const models::ImageInput& input, const DecodeLimits& limits,
                       Clock* clock) {
  const Request& request = call.request();
  if (const auto* tensor = std::get_if<TensorInput>(&request.input))
    return MakeTensorItems(call, *tensor, input);
  for (int64_t item = 0; item < request.size(); ++item) {
    if (absl::Status alive = CheckAlive(call.traits(), clock->Now()); !alive.ok()) return alive;
    if (absl::Status made = MakePictureItem(call, input, limits, item); !made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
