#include "server/inference/picture_inputs.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kImage = "image";
constexpr int64_t kMaxViews = 65535;
// As many as a message of saccade.v1 may have. An element of no bytes takes 4 in the message and far more
// here.
constexpr int64_t kMaxPictures = 65536;

absl::Status InvalidInput(absl::string_view problem) { return Invalid(kImageInput, problem); }

absl::StatusOr<InputPictures> FromBytes(const Tensor& tensor) {
  const size_t rank = tensor.shape.size();
  const int64_t views = rank == 2 ? tensor.shape[1] : 1;
  if ((rank != 1 && rank != 2) || views < 1 || views > kMaxViews) {
    return InvalidInput(
        absl::StrCat("the shape of BYTES is ", ShapeText(tensor.shape),
                     ", expected [n] or [n,1] with one encoded picture, video or TIFF per element, "
                     "[n,2] with the left and right pictures of stereo pairs, or [n,frames] with the "
                     "frames of clips"));
  }
  if (tensor.shape[0] > kMaxPictures / views) {
    return InvalidInput(absl::StrCat("the shape of BYTES is ", ShapeText(tensor.shape), ", more than ",
                                     kMaxPictures, " pictures; send them in several requests"));
  }
  auto split = SplitBytes(tensor.data, tensor.shape[0] * views);
  if (!split.ok()) return InvalidInput(split.status().message());
  std::vector<Picture> pictures;
  pictures.reserve(split->elements.size());
  for (const std::string_view element : split->elements) {
    pictures.push_back(EncodedPicture{.data = {.owner = split->owner, .bytes = element}});
  }
  return InputPictures{.input = std::move(pictures), .views = static_cast<int>(views)};
}

}  // namespace

absl::StatusOr<InputPictures> PicturesOf(const TensorCall& call) {
  if (call.inputs.size() != 1) {
    return Invalid("inputs", absl::StrCat("has ", call.inputs.size(), " tensors; expected 1, 'image'"));
  }
  const Tensor& tensor = call.inputs[0];
  if (tensor.name != kImage) {
    return Invalid("inputs",
                   absl::StrCat("no input is named ", Shown(tensor.name), "; the model's is 'image'"));
  }
  if (tensor.type == DataType::kFp32) {
    return InputPictures{.input = TensorInput{.shape = tensor.shape, .data = tensor.data}};
  }
  if (tensor.type == DataType::kBytes) return FromBytes(tensor);
  return InvalidInput(absl::StrCat("the datatype is ", NameOf(tensor.type),
                                   ", expected FP32 (normalised pixels) or BYTES (encoded pictures)"));
}

TensorDescription DescribeImage(const models::ImageInput& input) {
  TensorDescription image{.name = std::string(kImage), .type = DataType::kBytes, .shape = {-1}};
  if (input.medium != models::Medium::kPictures) {
    // One video or TIFF per element, or a clip's frames.
    image.shape.push_back(input.medium == models::Medium::kClip ? -1 : 1);
  } else if (input.fit == models::Fit::kKeepRatio) {
    image.shape.push_back(input.views);
  } else {
    image.type = DataType::kFp32;
    image.shape.insert(image.shape.end(), {input.channels(), input.height, input.width});
  }
  return image;
}

std::vector<TensorDescription> FormsOfImage(const models::ImageInput& input) {
  using Shape = std::vector<int64_t>;
  std::vector<TensorDescription> forms;
  const auto add = [&](DataType type, Shape shape) {
    forms.push_back({.name = std::string(kImage), .type = type, .shape = std::move(shape)});
  };
  const bool clip = input.medium == models::Medium::kClip;
  if (input.views == 1 || clip) add(DataType::kBytes, {-1});
  add(DataType::kBytes, {-1, clip ? -1 : input.views});
  const bool sized = input.fit != models::Fit::kKeepRatio;
  const int64_t height = sized ? input.height : -1;
  const int64_t width = sized ? input.width : -1;
  switch (input.medium) {
    case models::Medium::kPictures:
      add(DataType::kFp32, {-1, input.channels(), height, width});
      break;
    case models::Medium::kClip:
      add(DataType::kFp32, {-1, -1, input.channels(), input.height, input.width});
      break;
    case models::Medium::kVolume:
      add(DataType::kFp32, {-1, 1, -1, -1, -1});
      break;
  }
  return forms;
}

}  // namespace saccade::server
