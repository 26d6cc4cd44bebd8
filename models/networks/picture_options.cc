#include "models/networks/picture_options.h"

#include <cmath>
#include <string>

namespace saccade::models {
namespace {

constexpr int64_t kMinSize = 32;
constexpr int64_t kMaxSize = 1024;
constexpr int64_t kMaxResize = 4096;

std::string ChannelsText(const std::array<float, 3>& values) {
  return NumberText(values[0]) + "," + NumberText(values[1]) + "," + NumberText(values[2]);
}

}  // namespace

PictureDefaults TorchvisionPictures(int64_t resize_for_224) {
  return {.size_option = "crop_size", .resize_for_224 = resize_for_224, .reduced_jpeg = false};
}

ImageInput ReadPictureOptions(OptionReader& reader, const PictureDefaults& defaults) {
  ImageInput input;
  input.height = reader.Integer(defaults.size_option, defaults.size, kMinSize, kMaxSize);
  input.width = input.height;
  const double ratio = static_cast<double>(defaults.resize_for_224) / 224;
  const auto resized = static_cast<int64_t>(std::lround(static_cast<double>(input.height) * ratio));
  input.short_side = reader.Integer("resize_size", resized, kMinSize, kMaxResize);
  const bool cubic = reader.Choice("interpolation", "bilinear", {"bilinear", "bicubic"}) == "bicubic";
  input.interpolation = cubic ? Interpolation::kBicubic : Interpolation::kBilinear;
  // A mean or a deviation of values from 0 to 255 is a common mistake, and the bounds find it.
  input.mean = reader.Channels("mean", input.mean, 0, 1);
  input.std = reader.Channels("std", input.std, 0.001, 1);
  input.reduced_jpeg = reader.Flag("reduced_jpeg", defaults.reduced_jpeg);
  return input;
}

void AddPictureOptions(const ImageInput& input, const PictureDefaults& defaults, Options& text) {
  text[defaults.size_option] = std::to_string(input.height);
  text["resize_size"] = std::to_string(input.short_side);
  text["interpolation"] = input.interpolation == Interpolation::kBicubic ? "bicubic" : "bilinear";
  text["mean"] = ChannelsText(input.mean);
  text["std"] = ChannelsText(input.std);
  text["reduced_jpeg"] = FlagText(input.reduced_jpeg);
}

}  // namespace saccade::models
