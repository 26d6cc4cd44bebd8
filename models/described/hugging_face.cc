#include <algorithm>
#include <array>
#include <cmath>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/described/json_tree.h"
#include "models/described/picture_program.h"

namespace saccade::models {
namespace {

using Kind = JsonValue::Kind;

constexpr int64_t kMaxSide = 4096;
// Pillow's numbers of filters.
constexpr int kPillowBilinear = 2;
constexpr int kPillowBicubic = 3;

[[noreturn]] void Fail(const std::string& what) { throw LoadError(what); }

bool FlagOf(const JsonValue& object, const char* name, bool otherwise) {
  const JsonValue* value = object.Find(name);
  if (value == nullptr || value->kind == Kind::kNull) return otherwise;
  if (value->kind != Kind::kFlag)
    Fail(std::string(name) + " is " + NameOf(value->kind) + ", expected true or false");
  return value->flag;
}

double NumberOf(const JsonValue& object, const char* name, double otherwise, double min, double max) {
  const JsonValue* value = object.Find(name);
  if (value == nullptr || value->kind == Kind::kNull) return otherwise;
  if (value->kind != Kind::kNumber || !(value->number >= min && value->number <= max))
    Fail(std::string(name) + " is not a number from " + std::to_string(min) + " to " + std::to_string(max));
  return value->number;
}

std::array<double, 3> ChannelsOf(const JsonValue& object, const char* name, std::array<double, 3> otherwise,
                                 double min) {
  const JsonValue* value = object.Find(name);
  if (value == nullptr || value->kind == Kind::kNull) return otherwise;
  std::array<double, 3> channels{};
  if (value->kind != Kind::kList || value->items.size() != 3)
    Fail(std::string(name) + " is no list of 3 numbers");
  for (size_t c = 0; c < 3; ++c) {
    const JsonValue& item = value->items[c];
    if (item.kind != Kind::kNumber || !(item.number >= min && item.number <= 1e6))
      Fail(std::string(name) + " is no list of 3 numbers of at least " + std::to_string(min));
    channels.at(c) = item.number;
  }
  return channels;
}

int64_t SideOf(const JsonValue& size, const char* name) {
  return static_cast<int64_t>(NumberOf(size, name, 0, 1, kMaxSide));
}

Size WholeSize(const JsonValue* value, const char* name) {
  if (value != nullptr && value->kind == Kind::kNumber) {
    const auto side = static_cast<int64_t>(value->number);
    if (value->number >= 1 && value->number <= kMaxSide) return {side, side};
  }
  if (value != nullptr && value->kind == Kind::kObject && value->Find("height") != nullptr)
    return {SideOf(*value, "height"), SideOf(*value, "width")};
  Fail(std::string(name) + " is not understood; expected {\"height\": H, \"width\": W}");
}

void SetCrop(const JsonValue& processor, int64_t short_side, ImageInput& input) {
  const Size crop = WholeSize(processor.Find("crop_size"), "crop_size");
  input.fit = Fit::kCropCentre;
  input.short_side = short_side;
  input.height = crop.height;
  input.width = crop.width;
}

void SetResize(const JsonValue& processor, ImageInput& input) {
  const bool crops = FlagOf(processor, "do_center_crop", false);
  const JsonValue* size = processor.Find("size");
  if (!FlagOf(processor, "do_resize", true) || size == nullptr)
    Fail("do_resize is false or size is missing; expected a processor that resizes, or write a saccade.json");
  if (size->kind == Kind::kObject && size->Find("shortest_edge") != nullptr) {
    const int64_t side = SideOf(*size, "shortest_edge");
    if (crops) return SetCrop(processor, side, input);
    input.fit = Fit::kKeepRatio;
    input.exact_short_side = true;
    input.short_side = side;
    input.long_side = size->Find("longest_edge") != nullptr ? SideOf(*size, "longest_edge") : 2 * kMaxSide;
    input.long_side = std::max(input.long_side, side);
    input.height = side;
    input.width = std::min(input.long_side, side * 4 / 3);
    return;
  }
  const Size whole = WholeSize(size, "size");
  if (crops) {
    const Size crop = WholeSize(processor.Find("crop_size"), "crop_size");
    if (crop != whole || whole.height != whole.width)
      Fail("do_center_crop follows a resize to height and width; write a saccade.json");
  }
  input.fit = Fit::kExact;
  input.height = whole.height;
  input.width = whole.width;
}

ImageInput InputOf(const JsonValue& processor) {
  ImageInput input;
  SetResize(processor, input);
  const auto filter = static_cast<int>(NumberOf(processor, "resample", kPillowBilinear, 0, 5));
  if (filter != kPillowBilinear && filter != kPillowBicubic)
    Fail("resample is " + std::to_string(filter) + ", expected 2 (bilinear) or 3 (bicubic)");
  input.interpolation = filter == kPillowBicubic ? Interpolation::kBicubic : Interpolation::kBilinear;
  input.reduced_jpeg = false;
  const bool rescales = FlagOf(processor, "do_rescale", true);
  const double scale = rescales ? NumberOf(processor, "rescale_factor", 1.0 / 255, 1e-6, 1e3) : 1;
  const bool normalizes = FlagOf(processor, "do_normalize", true);
  const auto mean =
      normalizes ? ChannelsOf(processor, "image_mean", {0.485, 0.456, 0.406}, -1e6) : std::array<double, 3>{};
  const auto std = normalizes ? ChannelsOf(processor, "image_std", {0.229, 0.224, 0.225}, 1e-6)
                              : std::array<double, 3>{1, 1, 1};
  for (size_t c = 0; c < 3; ++c) {
    input.mean.at(c) = static_cast<float>(mean.at(c) / (255 * scale));
    input.std.at(c) = static_cast<float>(std.at(c) / (255 * scale));
  }
  return input;
}

struct KnownHead {
  const char* ending;
  HeadKind kind;
  std::vector<Role> roles;
};

const std::vector<KnownHead>& KnownHeads() {
  static const std::vector<KnownHead> known = {
      {"ForImageClassification", HeadKind::kClasses, {Role::kLogits}},
      {"ForObjectDetection", HeadKind::kSets, {Role::kLogits, Role::kBoxes}},
      {"ForSemanticSegmentation", HeadKind::kSemantic, {Role::kLogits}},
      {"ForDepthEstimation", HeadKind::kDepth, {Role::kDepth}},
      {"Model", HeadKind::kEmbedding, {Role::kEmbedding}}};
  return known;
}

// The names that these libraries give to the outputs of exported networks.
const char* OutputName(Role role) {
  if (role == Role::kBoxes) return "pred_boxes";
  if (role == Role::kDepth) return "predicted_depth";
  return role == Role::kEmbedding ? "pooler_output" : "logits";
}

// The detectors whose scores are sigmoids, without a class for no object.
bool IsSigmoidDetector(const std::string& architecture) {
  constexpr std::array<std::string_view, 6> kNames = {"Deformable", "ConditionalDetr", "RTDetr",
                                                      "RtDetr",     "DFine",           "DabDetr"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return architecture.find(name) != std::string::npos; });
}

std::string ArchitectureOf(const JsonValue& config) {
  const JsonValue* names = config.Find("architectures");
  const bool one = names != nullptr && names->kind == Kind::kList && names->items.size() == 1 &&
                   names->items[0].kind == Kind::kText;
  if (!one) Fail("config.json: architectures is not a list of one name");
  return names->items[0].text;
}

// "id2label": {"0": "cat", "1": "dog"}; every number from 0 has to be there.
std::vector<std::string> LabelsOf(const JsonValue& config) {
  const JsonValue* names = config.Find("id2label");
  std::vector<std::string> labels;
  if (names == nullptr || names->kind != Kind::kObject) return labels;
  for (size_t i = 0; i < names->members.size(); ++i) {
    const JsonValue* label = names->Find(std::to_string(i));
    if (label == nullptr || label->kind != Kind::kText)
      Fail("config.json: id2label has " + std::to_string(names->members.size()) + " names, but none for " +
           std::to_string(i));
    labels.push_back(label->text);
  }
  return labels;
}

}  // namespace

PictureProgram ReadHuggingFace(std::string_view config_text, std::string_view processor_text) {
  const JsonValue config = ParseJsonTree(config_text);
  const JsonValue processor = ParseJsonTree(processor_text);
  if (config.kind != Kind::kObject || processor.kind != Kind::kObject)
    Fail("config.json and preprocessor_config.json have to hold an object each");
  const std::string architecture = ArchitectureOf(config);
  const auto& heads = KnownHeads();
  const auto found = std::find_if(heads.begin(), heads.end(),
                                  [&](const KnownHead& head) { return architecture.ends_with(head.ending); });
  if (found == heads.end())
    Fail("config.json: the architecture is " + Quote(architecture) +
         ", whose head is not known; expected one that ends in "
         "ForImageClassification, ForObjectDetection, ForSemanticSegmentation, ForDepthEstimation or Model, "
         "or "
         "write a saccade.json");
  PictureProgram program{.input = InputOf(processor)};
  const ImageInput& input = program.input;
  const bool fixed = IsFixedSize(input);
  program.pictures = {.name = "pixel_values",
                      .dims = {3, fixed ? input.height : -1, fixed ? input.width : -1}};
  program.head.kind = found->kind;
  program.roles = found->roles;
  for (const Role role : program.roles) program.outputs.push_back({.name = OutputName(role), .dims = {-1}});
  if (found->kind == HeadKind::kSets) {
    const bool sigmoid = IsSigmoidDetector(architecture);
    program.head.activation = sigmoid ? Activation::kSigmoid : Activation::kSoftmax;
    program.head.no_object = !sigmoid;
    program.head.format = BoxFormat::kCentre;
    program.head.normalized = true;
    program.head.score_threshold = 0.05F;
  }
  if (found->kind == HeadKind::kClasses) {
    const JsonValue* problem = config.Find("problem_type");
    if (problem != nullptr && problem->text == "multi_label_classification")
      program.head.activation = Activation::kSigmoid;
  }
  const bool has_classes = found->kind != HeadKind::kEmbedding && found->kind != HeadKind::kDepth;
  if (has_classes) program.labels = LabelsOf(config);
  return program;
}

}  // namespace saccade::models
