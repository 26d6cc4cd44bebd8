#include "models/described/processor_classes.h"

#include <algorithm>
#include <array>

namespace saccade::models {
namespace {

// Defaults that several classes have.
constexpr std::string_view kLikeClip =
    R"({"size": {"shortest_edge": 224}, "default_to_square": false, "crop_size": 224, "do_center_crop": true,
        "resample": 3})";
constexpr std::string_view kLikeDetr =
    R"({"size": {"shortest_edge": 800, "longest_edge": 1333}, "default_to_square": false, "max_size": 1333,
        "do_pad": true, "resample": 2})";
constexpr std::string_view kLikeMobileNet =
    R"({"size": {"shortest_edge": 256}, "default_to_square": false, "crop_size": 224, "do_center_crop": true,
        "resample": 2})";

// From transformers 5.24. All of them resize and rescale by 1/255 unless the file says otherwise.
// Classes whose defaults have no do_center_crop do not crop.
// Where the defaults have do_pad, it pads the pictures of one batch to the same size, which does not change a
// picture alone.
constexpr std::array<ProcessorClass, 21> kClasses = {{
    {"Beit", Normalization::kHalf,
     R"({"size": {"height": 224, "width": 224}, "crop_size": 224, "do_center_crop": false, "resample": 3})"},
    {"Bit", Normalization::kClip, kLikeClip},
    {"Blip", Normalization::kClip,
     R"({"size": {"height": 384, "width": 384}, "do_center_crop": false, "resample": 3})"},
    {"CLIP", Normalization::kClip, kLikeClip},
    {"ChineseCLIP", Normalization::kClip, kLikeClip},
    {"ConditionalDetr", Normalization::kImageNet, kLikeDetr},
    {"ConvNext", Normalization::kHalf,
     R"({"size": {"shortest_edge": 384}, "default_to_square": false, "crop_pct": 0.875, "resample": 3})"},
    {"DINOv3ViT", Normalization::kImageNet,
     R"({"size": {"height": 224, "width": 224}, "do_center_crop": false, "resample": 2})"},
    {"DPT", Normalization::kHalf,
     R"({"size": {"height": 384, "width": 384}, "keep_aspect_ratio": false, "ensure_multiple_of": 1,
         "resample": 3})"},
    {"DeformableDetr", Normalization::kImageNet, kLikeDetr},
    {"DeiT", Normalization::kHalf,
     R"({"size": {"height": 256, "width": 256}, "crop_size": 224, "do_center_crop": true, "resample": 3})"},
    {"Detr", Normalization::kImageNet, kLikeDetr},
    {"MobileNetV1", Normalization::kHalf, kLikeMobileNet},
    {"MobileNetV2", Normalization::kHalf, kLikeMobileNet},
    {"MobileViT", Normalization::kNever,
     R"({"size": {"shortest_edge": 224}, "default_to_square": false, "crop_size": 256, "do_center_crop": true,
         "do_flip_channel_order": true, "do_normalize": false, "resample": 3})"},
    {"Pvt", Normalization::kImageNet,
     R"({"size": {"height": 224, "width": 224}, "do_center_crop": false, "resample": 3})"},
    {"RTDetr", Normalization::kImageNet,
     R"({"size": {"height": 640, "width": 640}, "default_to_square": false, "do_pad": false,
         "do_normalize": false, "resample": 2})"},
    {"Segformer", Normalization::kImageNet, R"({"size": {"height": 512, "width": 512}, "resample": 2})"},
    {"Siglip", Normalization::kHalf,
     R"({"size": {"height": 224, "width": 224}, "default_to_square": false, "do_center_crop": false,
         "resample": 3})"},
    {"ViT", Normalization::kHalf,
     R"({"size": {"height": 224, "width": 224}, "do_center_crop": false, "resample": 2})"},
    {"Yolos", Normalization::kImageNet, kLikeDetr},
}};

}  // namespace

const ProcessorClass* FindProcessorClass(std::string_view class_name) {
  constexpr std::array<std::string_view, 4> kEndings = {"ImageProcessor", "ImageProcessorFast",
                                                        "ImageProcessorPil", "FeatureExtractor"};
  for (const std::string_view ending : kEndings) {
    if (!class_name.ends_with(ending)) continue;
    const std::string_view name = class_name.substr(0, class_name.size() - ending.size());
    const auto* found = std::find_if(kClasses.begin(), kClasses.end(),
                                     [name](const ProcessorClass& one) { return one.name == name; });
    if (found != kClasses.end()) return found;
  }
  return nullptr;
}

std::vector<std::string> ProcessorClassNames() {
  std::vector<std::string> names;
  names.reserve(kClasses.size());
  for (const ProcessorClass& one : kClasses) names.push_back(std::string(one.name) + "ImageProcessor");
  return names;
}

}  // namespace saccade::models
