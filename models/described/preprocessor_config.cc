#include "models/described/preprocessor_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/described/processor_classes.h"

namespace saccade::models {
namespace {

using Kind = JsonValue::Kind;

constexpr int64_t kMaxSide = 4096;
// Pillow's numbers of filters.
constexpr int kPillowBilinear = 2;
constexpr int kPillowBicubic = 3;
// ConvNext's processor does not crop at this size and above.
constexpr int64_t kUncroppedSide = 384;
// YOLOS' processor rounds both sides down to multiples of this, if it scales to a shortest edge.
constexpr int64_t kYolosMultiple = 16;

// Keys that are read below, whatever the class is.
constexpr std::array<std::string_view, 13> kRead = {
    "do_resize",         "size",         "crop_size",  "resample",  "do_rescale",
    "rescale_factor",    "do_normalize", "image_mean", "image_std", "do_center_crop",
    "default_to_square", "do_pad",       "data_format"};
// Keys that only matter if do_pad is true.
constexpr std::array<std::string_view, 2> kOfPadding = {"pad_size", "size_divisor"};
// Keys that do not change what the network gets of a decoded picture: they are about classes, devices, labels
// for training, or pictures that are not in RGB.
constexpr std::array<std::string_view, 24> kWithoutEffect = {"image_processor_type",
                                                             "feature_extractor_type",
                                                             "processor_class",
                                                             "transformers_version",
                                                             "model_input_names",
                                                             "_valid_processor_keys",
                                                             "_valid_kwargs_names",
                                                             "use_fast",
                                                             "backend",
                                                             "device",
                                                             "return_tensors",
                                                             "disable_grouping",
                                                             "input_data_format",
                                                             "image_seq_length",
                                                             "do_convert_rgb",
                                                             "do_reduce_labels",
                                                             "reduce_labels",
                                                             "do_convert_annotations",
                                                             "format",
                                                             "annotations",
                                                             "return_segmentation_masks",
                                                             "masks_path",
                                                             "ignore_index",
                                                             "pad_and_return_pixel_mask"};

template <size_t count>
bool Has(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns a value as JSON has it, for messages.
std::string Shown(const JsonValue& value) {
  constexpr size_t kMaxShown = 8;
  std::ostringstream text;
  if (value.kind == Kind::kNull) return "null";
  if (value.kind == Kind::kFlag) return value.flag ? "true" : "false";
  if (value.kind == Kind::kText) return Quote(value.text);
  if (value.kind == Kind::kNumber) {
    text << value.number;
    return text.str();
  }
  const bool list = value.kind == Kind::kList;
  const size_t count = list ? value.items.size() : value.members.size();
  if (count > kMaxShown) return NameOf(value.kind);
  for (size_t i = 0; i < count; ++i) {
    text << (i == 0 ? "" : ", ");
    const JsonValue& one = list ? value.items[i] : value.members[i].second;
    if (!list) text << Quote(value.members[i].first) << ": ";
    text << (one.kind == Kind::kList || one.kind == Kind::kObject ? NameOf(one.kind) : Shown(one));
  }
  return (list ? "[" : "{") + text.str() + (list ? "]" : "}");
}

// The file's keys, completed by the defaults of the processor's class.
class Processor {
 public:
  // REQUIRES: `given` outlives this object.
  explicit Processor(const JsonValue& given)
      : given_(given), class_(ClassOf(given)), defaults_(ParseJsonTree(class_.defaults)) {}

  // Returns the key's value in the file, or else the class's; null if neither has one. A null in the file
  // stands for the default, as in transformers.
  const JsonValue* Find(std::string_view name) const {
    const JsonValue* value = given_.Find(name);
    return value == nullptr || value->kind == Kind::kNull ? defaults_.Find(name) : value;
  }
  bool HasDefault(std::string_view name) const { return defaults_.Find(name) != nullptr; }
  std::string_view class_name() const { return class_.name; }
  Normalization normalization() const { return class_.normalization; }
  const JsonValue& given() const { return given_; }

  [[noreturn]] void Refuse(std::string_view name, const std::string& why) const {
    const JsonValue* value = Find(name);
    throw LoadError(std::string(name) + " is " + (value == nullptr ? "missing" : Shown(*value)) + "; " + why +
                    ", or write a saccade.json");
  }

  bool Flag(std::string_view name, bool otherwise) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return otherwise;
    if (value->kind != Kind::kFlag) Refuse(name, "expected true or false");
    return value->flag;
  }

  double Number(std::string_view name, double otherwise, double min, double max) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return otherwise;
    if (value->kind != Kind::kNumber || !(value->number >= min && value->number <= max)) {
      std::ostringstream expected;
      expected << "expected a number from " << min << " to " << max;
      Refuse(name, expected.str());
    }
    return value->number;
  }

  std::array<double, 3> Channels(std::string_view name, std::array<double, 3> otherwise, double min) const {
    const JsonValue* value = Find(name);
    if (value == nullptr) return otherwise;
    const auto fits = [min](const JsonValue& item) {
      return item.kind == Kind::kNumber && item.number >= min && item.number <= 1e6;
    };
    if (value->kind != Kind::kList || value->items.size() != 3 ||
        !std::all_of(value->items.begin(), value->items.end(), fits)) {
      std::ostringstream expected;
      expected << "expected a list of 3 numbers of at least " << min;
      Refuse(name, expected.str());
    }
    return {value->items[0].number, value->items[1].number, value->items[2].number};
  }

 private:
  static const ProcessorClass& ClassOf(const JsonValue& given) {
    const JsonValue* name = given.Find("image_processor_type");
    if (name == nullptr) name = given.Find("feature_extractor_type");
    const ProcessorClass* found =
        name == nullptr || name->kind != Kind::kText ? nullptr : FindProcessorClass(name->text);
    if (found != nullptr) return *found;
    throw LoadError("image_processor_type is " + (name == nullptr ? "missing" : Shown(*name)) +
                    ", so it is not known how pictures are prepared; expected one of " +
                    Joined(ProcessorClassNames(), ", ") + ", or write a saccade.json");
  }

  const JsonValue& given_;
  const ProcessorClass& class_;
  const JsonValue defaults_;
};

// A size by height and width, or by its shortest edge; a side that was not given is 0.
struct Edges {
  Size whole;
  int64_t shortest = 0;
  int64_t longest = 0;
};

// Returns a side of the key's object; 0 if it has none of that name.
int64_t SideOf(const Processor& processor, std::string_view key, const JsonValue& size,
               std::string_view name) {
  const JsonValue* side = size.Find(name);
  if (side == nullptr || side->kind == Kind::kNull) return 0;
  const bool fits = side->kind == Kind::kNumber && side->number >= 1 && side->number <= kMaxSide &&
                    side->number == std::floor(side->number);
  if (!fits) processor.Refuse(key, "expected whole pixels from 1 to " + std::to_string(kMaxSide));
  return static_cast<int64_t>(side->number);
}

// Turns a number or a list, as files of old versions have them, into the object that it stands for.
JsonValue SizeObject(const Processor& processor, std::string_view key, const JsonValue& size) {
  JsonValue object{.kind = Kind::kObject};
  if (size.kind == Kind::kList && size.items.size() == 2)
    object.members = {{"height", size.items[0]}, {"width", size.items[1]}};
  if (size.kind != Kind::kNumber) return size.kind == Kind::kList ? object : size;
  const bool square = key != "size" || processor.Flag("default_to_square", true);
  if (square) {
    object.members = {{"height", size}, {"width", size}};
  } else {
    object.members = {{"shortest_edge", size}};
    const JsonValue* longest = processor.Find("max_size");
    if (longest != nullptr) object.members.emplace_back("longest_edge", *longest);
  }
  return object;
}

Edges EdgesOf(const Processor& processor, std::string_view key) {
  const JsonValue* given = processor.Find(key);
  if (given == nullptr) processor.Refuse(key, "expected {\"height\": H, \"width\": W}");
  const JsonValue size = SizeObject(processor, key, *given);
  Edges edges;
  edges.whole = {SideOf(processor, key, size, "height"), SideOf(processor, key, size, "width")};
  edges.shortest = SideOf(processor, key, size, "shortest_edge");
  edges.longest = SideOf(processor, key, size, "longest_edge");
  const bool whole = edges.whole.height > 0 && edges.whole.width > 0;
  if (size.kind != Kind::kObject || whole == (edges.shortest > 0) || (whole && edges.longest > 0))
    processor.Refuse(key, "expected {\"height\": H, \"width\": W} or {\"shortest_edge\": S}");
  return edges;
}

Size WholeSize(const Processor& processor, std::string_view key) {
  const Edges edges = EdgesOf(processor, key);
  if (edges.shortest > 0) processor.Refuse(key, "expected {\"height\": H, \"width\": W}");
  return edges.whole;
}

void SetExact(Size size, ImageInput& input) {
  input.fit = Fit::kExact;
  input.height = size.height;
  input.width = size.width;
}

// Cuts out the centre; the caller sets the size before that.
void SetCrop(Size crop, ImageInput& input) {
  input.fit = Fit::kCropCentre;
  input.crop_rounds_down = true;
  input.height = crop.height;
  input.width = crop.width;
}

void SetKeptRatio(const Processor& processor, const Edges& edges, ImageInput& input) {
  if (edges.longest > 0 && edges.longest < edges.shortest)
    processor.Refuse("size", "expected a longest_edge of at least the shortest_edge");
  input.fit = Fit::kKeepRatio;
  input.exact_short_side = true;
  input.short_side = edges.shortest;
  input.long_side = edges.longest > 0 ? edges.longest : 2 * kMaxSide;
  input.height = edges.shortest;
  input.width = std::min(input.long_side, edges.shortest * 4 / 3);
}

// ConvNext: below 384 the centre is `crop_pct` of the shorter side; from there on nothing is cropped.
void SetCropOfShare(const Processor& processor, ImageInput& input) {
  const double share = processor.Number("crop_pct", 1, 0.01, 1);
  const Edges edges = EdgesOf(processor, "size");
  if (edges.shortest == 0) processor.Refuse("size", "expected {\"shortest_edge\": S} with crop_pct");
  const Size square{edges.shortest, edges.shortest};
  if (edges.shortest >= kUncroppedSide) return SetExact(square, input);
  SetCrop(square, input);
  input.short_side = static_cast<int64_t>(static_cast<double>(edges.shortest) / share);
}

void SetEitherSide(const Processor& processor, Size size, int64_t multiple, ImageInput& input) {
  if (multiple > std::min(size.height, size.width))
    processor.Refuse("ensure_multiple_of", "expected at most the size, " + std::to_string(size.height) +
                                               " x " + std::to_string(size.width));
  input.fit = Fit::kKeepRatio;
  input.either_side = true;
  input.multiple = multiple;
  input.height = size.height;
  input.width = size.width;
  input.long_side = 2 * kMaxSide;
}

// DPT: the size is rounded to multiples. With keep_aspect_ratio, that is done for each picture.
void SetMultiple(const Processor& processor, ImageInput& input) {
  const double given = processor.Number("ensure_multiple_of", 1, 1, kMaxSide);
  const auto multiple = static_cast<int64_t>(given);
  if (static_cast<double>(multiple) != given)
    processor.Refuse("ensure_multiple_of", "expected a whole number");
  const Size size = WholeSize(processor, "size");
  if (processor.Flag("keep_aspect_ratio", false)) return SetEitherSide(processor, size, multiple, input);
  const auto rounded = [&](int64_t side) {
    const int64_t down = side / multiple * multiple;
    const int64_t left = side - down;
    // transformers computes the side in floating-point numbers, so a half may go either way.
    if (2 * left == multiple || down + left < multiple)
      processor.Refuse("ensure_multiple_of",
                       "expected a number that divides the size " + std::to_string(side));
    return 2 * left > multiple ? down + multiple : down;
  };
  SetExact({rounded(size.height), rounded(size.width)}, input);
}

void SetCentreCrop(const Processor& processor, const Edges& size, ImageInput& input) {
  const Size crop = WholeSize(processor, "crop_size");
  if (size.longest > 0) processor.Refuse("size", "expected no longest_edge before a crop");
  const bool whole = size.shortest == 0;
  const Size least = whole ? size.whole : Size{size.shortest, size.shortest};
  if (crop.height > least.height || crop.width > least.width)
    processor.Refuse("crop_size", "pictures would be padded; expected at most the size, " +
                                      std::to_string(least.height) + " x " + std::to_string(least.width));
  if (whole && crop == size.whole) return SetExact(crop, input);
  SetCrop(crop, input);
  if (whole) {
    input.before_crop = size.whole;
  } else {
    input.short_side = size.shortest;
  }
}

void SetResize(const Processor& processor, ImageInput& input) {
  if (!processor.Flag("do_resize", true)) processor.Refuse("do_resize", "expected a processor that resizes");
  const bool crops = processor.Flag("do_center_crop", false);
  if (crops && !processor.HasDefault("do_center_crop"))
    processor.Refuse("do_center_crop", "expected false with this processor");
  if (processor.HasDefault("crop_pct")) return SetCropOfShare(processor, input);
  if (processor.HasDefault("ensure_multiple_of")) return SetMultiple(processor, input);
  const Edges size = EdgesOf(processor, "size");
  if (crops) return SetCentreCrop(processor, size, input);
  if (size.shortest == 0) return SetExact(size.whole, input);
  SetKeptRatio(processor, size, input);
  if (processor.class_name() != "Yolos") return;
  if (size.shortest < kYolosMultiple)
    processor.Refuse("size", "this processor rounds both sides down to multiples of " +
                                 std::to_string(kYolosMultiple) +
                                 "; expected a shortest_edge of at least that");
  input.multiple = kYolosMultiple;
}

void SetFilter(const Processor& processor, ImageInput& input) {
  const auto filter = static_cast<int>(processor.Number("resample", kPillowBilinear, 0, 5));
  if (filter != kPillowBilinear && filter != kPillowBicubic)
    processor.Refuse("resample", "expected 2 (bilinear) or 3 (bicubic)");
  input.interpolation = filter == kPillowBicubic ? Interpolation::kBicubic : Interpolation::kBilinear;
  input.reduced_jpeg = false;
}

void SetNumbers(const Processor& processor, ImageInput& input) {
  using Channels = std::array<double, 3>;
  const bool rescales = processor.Flag("do_rescale", true);
  const double scale = rescales ? processor.Number("rescale_factor", 1.0 / 255, 1e-6, 1e3) : 1;
  Channels mean{};
  Channels std{1, 1, 1};
  if (processor.Flag("do_normalize", true)) {
    if (processor.normalization() == Normalization::kNever)
      processor.Refuse("do_normalize", "this processor does not normalize; expected false");
    const bool half = processor.normalization() == Normalization::kHalf;
    const bool clip = processor.normalization() == Normalization::kClip;
    mean = processor.Channels("image_mean",
                              half   ? Channels{0.5, 0.5, 0.5}
                              : clip ? Channels{0.48145466, 0.4578275, 0.40821073}
                                     : Channels{0.485, 0.456, 0.406},
                              -1e6);
    std = processor.Channels("image_std",
                             half   ? Channels{0.5, 0.5, 0.5}
                             : clip ? Channels{0.26862954, 0.26130258, 0.27577711}
                                    : Channels{0.229, 0.224, 0.225},
                             1e-6);
  }
  for (size_t c = 0; c < 3; ++c) {
    input.mean.at(c) = static_cast<float>(mean.at(c) / (255 * scale));
    input.std.at(c) = static_cast<float>(std.at(c) / (255 * scale));
  }
}

void CheckPadding(const Processor& processor) {
  if (!processor.Flag("do_pad", false)) return;
  for (const std::string_view name : kOfPadding) {
    if (processor.Find(name) != nullptr) processor.Refuse(name, "expected none with do_pad true");
  }
  if (!processor.HasDefault("do_pad")) processor.Refuse("do_pad", "expected false");
}

// A key that the class does not read may still be one that the author's own code reads.
void CheckKeys(const Processor& processor) {
  for (const auto& [name, value] : processor.given().members) {
    const bool off = value.kind == Kind::kNull || (value.kind == Kind::kFlag && !value.flag);
    if (off || Has(kRead, name) || Has(kWithoutEffect, name) || Has(kOfPadding, name) ||
        processor.HasDefault(name))
      continue;
    throw LoadError("the key " + Quote(name) + " is " + Shown(value) + ", and it is not known what " +
                    std::string(processor.class_name()) +
                    "ImageProcessor does with it; leave it out if it does not change pictures, or write a "
                    "saccade.json");
  }
  const JsonValue* order = processor.Find("data_format");
  if (order != nullptr && (order->kind != Kind::kText || order->text != "channels_first"))
    processor.Refuse("data_format", "expected 'channels_first'");
}

}  // namespace

ImageInput ReadPreprocessorConfig(const JsonValue& given) {
  const Processor processor(given);
  CheckKeys(processor);
  CheckPadding(processor);
  ImageInput input;
  SetResize(processor, input);
  SetFilter(processor, input);
  SetNumbers(processor, input);
  input.rgb = !processor.Flag("do_flip_channel_order", false);
  return input;
}

}  // namespace saccade::models
