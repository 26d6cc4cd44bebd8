#include <algorithm>
#include <array>
#include <cmath>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/described/json_fields.h"
#include "models/described/picture_program.h"

namespace saccade::models {
namespace {

constexpr int64_t kMaxInputSide = 4096;

using Numbers = std::vector<double>;

DataType ReadType(JsonFields& fields, const std::string& name, DataType otherwise) {
  const std::string text = fields.Text(name, NameOf(otherwise));
  const std::optional<DataType> type = DataTypeOf(text);
  if (!type || *type == DataType::kBytes)
    fields.Refuse(name, Quote(text), "FP32, FP16, BF16, UINT8, INT64 or another type of numbers");
  return *type;
}

// `expected` says in the error what has to be whole.
std::vector<int64_t> WholeNumbers(const JsonFields& fields, const std::string& name, const Numbers& numbers,
                                  const std::string& expected) {
  std::vector<int64_t> whole;
  for (const double number : numbers) {
    if (number != std::floor(number)) fields.Refuse(name, "no whole number", expected);
    whole.push_back(static_cast<int64_t>(number));
  }
  return whole;
}

// One number for a square, or height and width.
Size ReadSize(JsonFields& fields, const std::string& name, Size otherwise) {
  const Numbers sides =
      fields.Numbers(name, {static_cast<double>(otherwise.height), static_cast<double>(otherwise.width)}, 2,
                     2, 1, static_cast<double>(kMaxInputSide));
  const std::vector<int64_t> whole = WholeNumbers(fields, name, sides, "height and width in whole pixels");
  return {whole[0], whole[1]};
}

// The program gets (pixel * scale - mean) / std; ImageInput has mean and std for pixels from 0 to 1.
void ReadNumbers(JsonFields& fields, ImageInput& input) {
  const double scale = fields.Number("scale", 1.0 / 255, 1e-6, 1e3);
  const Numbers mean = fields.Numbers("mean", {0, 0, 0}, 3, 3, -1e6, 1e6);
  const Numbers std = fields.Numbers("std", {1, 1, 1}, 3, 3, 1e-6, 1e6);
  for (size_t c = 0; c < 3; ++c) {
    input.mean.at(c) = static_cast<float>(mean[c] / (255 * scale));
    input.std.at(c) = static_cast<float>(std[c] / (255 * scale));
  }
}

// `whole`: whether both sides are scaled to a size before the crop, or else the shorter one.
void ReadCrop(JsonFields& fields, bool whole, ImageInput& input) {
  const Size crop = ReadSize(fields, "crop", {224, 224});
  input.fit = Fit::kCropCentre;
  if (whole) {
    input.before_crop = ReadSize(fields, "size", {256, 256});
    const Size size = input.before_crop;
    if (crop.height > size.height || crop.width > size.width)
      fields.Refuse("crop", std::to_string(crop.height) + " x " + std::to_string(crop.width),
                    "at most the size, " + std::to_string(size.height) + " x " + std::to_string(size.width));
  } else {
    input.short_side = fields.Integer("size", 256, 1, kMaxInputSide);
  }
  input.crop_rounds_down = fields.Choice("rounding", "even", {"even", "down"}) == "down";
  input.height = crop.height;
  input.width = crop.width;
}

// `max`: the side to which pictures are scaled, at least.
void ReadMultiple(JsonFields& fields, int64_t max, ImageInput& input) {
  const std::string buckets = fields.Text("buckets", "stride:1");
  input.buckets = ParseBuckets("input", buckets);
  input.multiple = fields.Integer("multiple", 1, 1, max);
  // Where no listed size holds a picture, it is scaled once more, to sides that need not be multiples.
  if (input.multiple > 1 && !input.buckets.sizes.empty())
    fields.Refuse("buckets", Quote(buckets), "stride:N with multiple " + std::to_string(input.multiple));
}

void ReadEitherSide(JsonFields& fields, ImageInput& input) {
  const Size size = ReadSize(fields, "size", {384, 384});
  input.fit = Fit::kKeepRatio;
  input.either_side = true;
  input.height = size.height;
  input.width = size.width;
  input.long_side =
      fields.Integer("max_size", 2 * kMaxInputSide, std::max(size.height, size.width), 2 * kMaxInputSide);
  ReadMultiple(fields, std::min(size.height, size.width), input);
}

void ReadKeptRatio(JsonFields& fields, bool shorter, ImageInput& input) {
  input.fit = Fit::kKeepRatio;
  if (shorter) {
    input.short_side = fields.Integer("size", 800, 1, kMaxInputSide);
    input.long_side = fields.Integer("max_size", kMaxInputSide, input.short_side, 2 * kMaxInputSide);
    input.exact_short_side = fields.Choice("rounding", "shorter", {"shorter", "both"}) == "shorter";
  } else {
    input.long_side = fields.Integer("size", 1024, 1, kMaxInputSide);
    // Larger than any picture's, so that only the longer side decides.
    input.short_side = 2 * kMaxInputSide;
  }
  ReadMultiple(fields, shorter ? input.short_side : input.long_side, input);
  input.height = shorter ? input.short_side : input.long_side;
  input.width = shorter ? std::min(input.long_side, input.short_side * 4 / 3) : input.long_side;
}

Interpolation ReadFilter(JsonFields& fields) {
  const bool cubic = fields.Choice("filter", "bilinear", {"bilinear", "bicubic"}) == "bicubic";
  return cubic ? Interpolation::kBicubic : Interpolation::kBilinear;
}

void ReadResize(JsonFields& fields, ImageInput& input) {
  const std::string resize =
      fields.Choice("resize", "exact", {"exact", "shorter", "longer", "either", "letterbox"});
  const bool crops = fields.Take("crop") != nullptr;
  if (crops && resize != "shorter" && resize != "exact")
    fields.Refuse("crop", "set with resize " + Quote(resize),
                  "resize \"shorter\" or \"exact\" before a crop");
  if (crops) {
    ReadCrop(fields, resize == "exact", input);
  } else if (resize == "either") {
    ReadEitherSide(fields, input);
  } else if (resize == "shorter" || resize == "longer") {
    ReadKeptRatio(fields, resize == "shorter", input);
  } else {
    const Size size = ReadSize(fields, "size", {224, 224});
    input.fit = resize == "letterbox" ? Fit::kLetterbox : Fit::kExact;
    input.height = size.height;
    input.width = size.width;
  }
  if (input.fit == Fit::kLetterbox) input.fill = static_cast<float>(fields.Number("fill", 114, 0, 255));
  input.interpolation = ReadFilter(fields);
  input.antialias = fields.Flag("antialias", input.fit != Fit::kLetterbox);
  if (input.interpolation == Interpolation::kBicubic && !input.antialias)
    fields.Refuse("antialias", "false", "true with filter \"bicubic\"");
  // The network's author had the whole picture.
  input.reduced_jpeg = false;
}

void ReadInput(const JsonValue* value, PictureProgram& program) {
  const JsonValue none{.kind = JsonValue::Kind::kObject};
  JsonFields fields("input", value == nullptr ? none : *value);
  ImageInput& input = program.input;
  ReadResize(fields, input);
  ReadNumbers(fields, input);
  input.rgb = fields.Choice("colour", "rgb", {"rgb", "bgr"}) == "rgb";
  program.channels_last = fields.Choice("layout", "nchw", {"nchw", "nhwc"}) == "nhwc";
  program.pictures.name = fields.Text("name", "pixel_values");
  program.pictures.type = ReadType(fields, "type", DataType::kFp32);
  const bool fixed = IsFixedSize(input);
  const int64_t height = fixed ? input.height : -1;
  const int64_t width = fixed ? input.width : -1;
  program.pictures.dims =
      program.channels_last ? std::vector<int64_t>{height, width, 3} : std::vector<int64_t>{3, height, width};
  const std::string mask = fields.Take("mask") != nullptr ? fields.Text("mask", "pixel_mask") : "";
  const DataType mask_type = ReadType(fields, "mask_type", DataType::kInt64);
  if (!mask.empty()) program.mask = TensorSignature{.name = mask, .type = mask_type, .dims = {height, width}};
  fields.RefuseOthers();
}

ScoreActivation ReadActivation(JsonFields& fields, const std::string& otherwise,
                               const std::vector<std::string>& legal) {
  const std::string text = fields.Choice("activation", otherwise, legal);
  return text == "softmax"   ? ScoreActivation::kSoftmax
         : text == "sigmoid" ? ScoreActivation::kSigmoid
                             : ScoreActivation::kNone;
}

void ReadBoxRules(JsonFields& fields, const std::string& format, bool normalized, Head& head) {
  const std::string boxes = fields.Choice("format", format, {"corners", "centre", "corner"});
  head.format = boxes == "corners"  ? BoxFormat::kCorners
                : boxes == "centre" ? BoxFormat::kCentre
                                    : BoxFormat::kCorner;
  head.normalized = fields.Flag("normalized", normalized);
  head.score_threshold = static_cast<float>(fields.Number("score_threshold", 0.05, 0, 1));
  head.max_detections = fields.Integer("max_detections", 100, 1, kMaxDetectionsKept);
}

void ReadSuppression(JsonFields& fields, std::optional<double> otherwise, Head& head) {
  const JsonValue* nms = fields.Take("nms");
  const bool none = nms == nullptr ? !otherwise : nms->kind == JsonValue::Kind::kNull;
  if (!none) head.nms = static_cast<float>(fields.Number("nms", otherwise.value_or(0.5), 0, 1));
  head.across_classes = fields.Flag("across_classes", false);
  head.max_candidates = fields.Integer("max_candidates", 1000, 1, kMaxDetectionsKept);
}

void ReadPrototypeRules(JsonFields& fields, Head& head) {
  head.prototypes_last = fields.Choice("prototype_layout", "chw", {"chw", "hwc"}) == "hwc";
  head.mask_side = fields.Integer("mask_side", head.mask_side, 1, kMaxMaskSide);
}

void ReadGrid(JsonFields& fields, Head& head) {
  head.activation = ReadActivation(fields, "none", {"none", "sigmoid"});
  ReadBoxRules(fields, "centre", false, head);
  ReadSuppression(fields, 0.45, head);
  head.channels_first = fields.Choice("order", "columns", {"columns", "rows"}) == "columns";
  head.objectness = fields.Flag("objectness", false);
  head.keypoints = fields.Integer("keypoints", 0, 0, 1000);
  head.strides =
      WholeNumbers(fields, "strides", fields.Numbers("strides", {}, 1, 8, 1, 1024), "whole pixels");
  ReadPrototypeRules(fields, head);
}

std::vector<Role> ReadHead(const JsonValue* value, const ImageInput& input, Head& head) {
  if (value == nullptr)
    throw LoadError(
        "head is missing; expected what the outputs mean, as in \"head\": {\"kind\": \"classes\"}");
  JsonFields fields("head", *value);
  const std::string kind =
      fields.Choice("kind", "", {"classes", "sets", "boxes", "grid", "semantic", "depth", "embedding"});
  std::vector<Role> roles;
  if (kind == "classes") {
    head.kind = HeadKind::kClasses;
    head.activation = ReadActivation(fields, "softmax", {"softmax", "sigmoid", "none"});
    roles = {Role::kLogits};
  } else if (kind == "sets") {
    head.kind = HeadKind::kSets;
    head.activation = ReadActivation(fields, "softmax", {"softmax", "sigmoid"});
    ReadBoxRules(fields, "centre", true, head);
    head.no_object = fields.Flag("no_object", head.activation == ScoreActivation::kSoftmax);
    roles = {Role::kLogits, Role::kBoxes};
  } else if (kind == "boxes") {
    head.kind = HeadKind::kBoxes;
    head.activation = ReadActivation(fields, "none", {"none", "sigmoid", "softmax"});
    ReadBoxRules(fields, "corners", false, head);
    ReadSuppression(fields, std::nullopt, head);
    head.background = fields.Flag("background", false);
    ReadPrototypeRules(fields, head);
    roles = {Role::kBoxes, Role::kScores,       Role::kLabels,
             Role::kMasks, Role::kCoefficients, Role::kPrototypes};
  } else if (kind == "grid") {
    head.kind = HeadKind::kGrid;
    ReadGrid(fields, head);
    roles = {Role::kGrid, Role::kPrototypes};
  } else if (kind == "semantic") {
    head.kind = HeadKind::kSemantic;
    roles = {Role::kLogits};
  } else if (kind == "depth") {
    head.kind = HeadKind::kDepth;
    head.filter = ReadFilter(fields);
    roles = {Role::kDepth};
  } else {
    head.kind = HeadKind::kEmbedding;
    head.unit_length = fields.Flag("unit_length", false);
    roles = {Role::kEmbedding};
  }
  fields.RefuseOthers();
  if (input.fit == Fit::kCropCentre && head.kind != HeadKind::kClasses && head.kind != HeadKind::kEmbedding)
    throw LoadError("input.crop is set with head.kind " + Quote(kind) +
                    ", whose answers have positions in the whole picture; leave the crop out");
  return roles;
}

// Whether a head reads an output only if the document names it.
bool IsOptional(Role role) {
  return role == Role::kMasks || role == Role::kCoefficients || role == Role::kPrototypes;
}

void CheckRoles(const PictureProgram& program) {
  const auto has = [&program](Role role) { return OutputOf(program, role).has_value(); };
  if (has(Role::kMasks) && !has(Role::kLabels))
    throw LoadError("outputs has masks without labels; expected a label for each box, and its mask");
  if (has(Role::kMasks) && has(Role::kPrototypes))
    throw LoadError("outputs has both masks and prototypes; expected one of them");
  if (program.head.kind == HeadKind::kBoxes && has(Role::kCoefficients) != has(Role::kPrototypes))
    throw LoadError(
        "outputs has coefficients without prototypes, or prototypes without coefficients; expected both, "
        "for masks that are sums of prototypes");
  if (has(Role::kPrototypes) && program.head.keypoints > 0)
    throw LoadError("outputs has prototypes with head.keypoints " + std::to_string(program.head.keypoints) +
                    "; expected keypoints or the coefficients of masks after the scores");
}

// The outputs by role, in the order of `roles`; all that are not optional if the document names none.
void ReadOutputs(const JsonValue* value, const std::vector<Role>& roles, PictureProgram& program) {
  const JsonValue none{.kind = JsonValue::Kind::kObject};
  JsonFields fields("outputs", value == nullptr ? none : *value);
  for (const Role role : roles) {
    TensorSignature output{.name = NameOf(role),
                           .type = role == Role::kLabels ? DataType::kInt64 : DataType::kFp32,
                           .dims = {-1}};
    const JsonValue* given = fields.Take(NameOf(role));
    // Without names, a detector's outputs are its boxes, scores and labels.
    if (given == nullptr && IsOptional(role)) continue;
    if (given == nullptr && value != nullptr && role == Role::kLabels) continue;
    if (given == nullptr && value != nullptr)
      throw LoadError("outputs has no key '" + std::string(NameOf(role)) + "', which this head reads");
    if (given != nullptr && given->kind == JsonValue::Kind::kText) {
      output.name = fields.Text(NameOf(role), "");
    } else if (given != nullptr) {
      JsonFields one(fields.PathOf(NameOf(role)), *given);
      output.name = one.Text("name", output.name);
      output.type = ReadType(one, "type", output.type);
      one.RefuseOthers();
    }
    program.outputs.push_back(std::move(output));
    program.roles.push_back(role);
  }
  fields.RefuseOthers();
  CheckRoles(program);
}

std::vector<std::string> ReadLabels(const JsonValue* value) {
  std::vector<std::string> labels;
  if (value == nullptr) return labels;
  if (value->kind != JsonValue::Kind::kList)
    throw LoadError(std::string("labels is ") + NameOf(value->kind) + ", expected a list of names");
  if (static_cast<int64_t>(value->items.size()) > kMaxLabelCount)
    throw LoadError("labels has " + std::to_string(value->items.size()) + " names, expected at most " +
                    std::to_string(kMaxLabelCount));
  for (const JsonValue& item : value->items) {
    const bool fits =
        item.kind == JsonValue::Kind::kText && !item.text.empty() && item.text.size() <= kMaxLabelBytes;
    if (!fits)
      throw LoadError("labels: entry " + std::to_string(labels.size()) + " is no name of 1 to 256 bytes");
    labels.push_back(item.text);
  }
  return labels;
}

}  // namespace

PictureProgram ReadDescription(std::string_view json) {
  const JsonValue document = ParseJsonTree(json);
  JsonFields fields("", document);
  PictureProgram program;
  ReadInput(fields.Take("input"), program);
  const std::vector<Role> roles = ReadHead(fields.Take("head"), program.input, program.head);
  ReadOutputs(fields.Take("outputs"), roles, program);
  program.labels = ReadLabels(fields.Take("labels"));
  program.max_batch_size = fields.Integer("max_batch_size", 0, 1, 8192);
  fields.RefuseOthers();
  return program;
}

}  // namespace saccade::models
