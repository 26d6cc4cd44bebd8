#include "models/api/placement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

constexpr int64_t kMaxSide = 8192;
constexpr size_t kMaxSizes = 64;
constexpr std::string_view kStridePrefix = "stride:";

Size Scale(Size size, double factor) {
  const auto side = [factor](int64_t length) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::floor(static_cast<double>(length) * factor)));
  };
  return {side(size.height), side(size.width)};
}

// Computes as Hugging Face's processors do: the longer side is rounded down, after the shorter side was
// reduced where the longer one would exceed its limit.
Size ScaleToShortSide(const ImageInput& input, Size sent) {
  const int64_t short_side = std::min(sent.height, sent.width);
  const auto shorter = static_cast<double>(short_side);
  const auto longer = static_cast<double>(std::max(sent.height, sent.width));
  auto side = static_cast<double>(input.short_side);
  const auto most = static_cast<double>(input.long_side);
  if (longer / shorter * side > most) side = most * shorter / longer;
  // Rounds a half to the even number, as Python does.
  const auto small = std::max<int64_t>(1, static_cast<int64_t>(std::nearbyint(side)));
  if (small == short_side && longer <= most) return sent;
  // Where the rounding alone makes the shorter side what it was, transformers lets the longer one exceed its
  // bound by a few pixels. Here the bound counts.
  const auto scaled = std::max<int64_t>(1, static_cast<int64_t>(side * longer / shorter));
  const int64_t large = std::min(scaled, std::max(input.long_side, small));
  return sent.height < sent.width ? Size{small, large} : Size{large, small};
}

// Computes as transformers' DPT processor does, in the same order: a half is rounded to the even number, so
// the last bit of a product matters. It does not bound the longer side, which here is at most long_side.
Size ScaleToEitherSide(const ImageInput& input, Size sent) {
  const auto height = static_cast<double>(sent.height);
  const auto width = static_cast<double>(sent.width);
  const double to_height = static_cast<double>(input.height) / height;
  const double to_width = static_cast<double>(input.width) / width;
  const double to_either = std::abs(1 - to_width) < std::abs(1 - to_height) ? to_width : to_height;
  const double factor = std::min(to_either, static_cast<double>(input.long_side) / std::max(height, width));
  const auto side = [&input, factor](double length) {
    const auto multiples =
        static_cast<int64_t>(std::nearbyint(factor * length / static_cast<double>(input.multiple)));
    return std::clamp<int64_t>(multiples, 1, input.long_side / input.multiple) * input.multiple;
  };
  return {side(height), side(width)};
}

// Scales as ultralytics' letterbox does: both sides by the same factor, rounded, and the odd pixel of the
// border to the right and below.
Placement Letterbox(const ImageInput& input, Size sent) {
  const double factor = LetterboxFactor(input, sent);
  const auto side = [factor](int64_t length, int64_t max) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(length) * factor), 1, max);
  };
  const Size bucket{input.height, input.width};
  Placement placement{sent, {side(sent.height, bucket.height), side(sent.width, bucket.width)}, bucket};
  placement.top = (bucket.height - placement.scaled.height) / 2;
  placement.left = (bucket.width - placement.scaled.width) / 2;
  return placement;
}

// Computes as torchvision's eager transform does: in double precision with floor, which may give a side one
// pixel shorter than requested. Networks were trained at exactly these sizes.
Size ScaleBothDown(const ImageInput& input, Size sent) {
  const auto shorter = static_cast<double>(std::min(sent.height, sent.width));
  const auto longer = static_cast<double>(std::max(sent.height, sent.width));
  const double to_long = static_cast<double>(input.long_side) / longer;
  if (input.short_side == 0) return to_long < 1 ? Scale(sent, to_long) : sent;
  return Scale(sent, std::min(static_cast<double>(input.short_side) / shorter, to_long));
}

Size ScaleWithin(const ImageInput& input, Size sent) {
  if (input.either_side) return ScaleToEitherSide(input, sent);
  const Size scaled = input.exact_short_side ? ScaleToShortSide(input, sent) : ScaleBothDown(input, sent);
  const auto multiple = [&input](int64_t side) {
    return std::max(side - side % input.multiple, input.multiple);
  };
  return {multiple(scaled.height), multiple(scaled.width)};
}

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

bool Holds(Size bucket, Size size) { return bucket.height >= size.height && bucket.width >= size.width; }

// Returns the smallest listed bucket (by area) that holds `size`.
std::optional<Size> Smallest(const std::vector<Size>& sizes, Size size) {
  std::optional<Size> best;
  for (const Size bucket : sizes) {
    if (!Holds(bucket, size)) continue;
    if (!best || bucket.height * bucket.width < best->height * best->width) best = bucket;
  }
  return best;
}

// Scales a picture that is larger than every bucket down to the bucket that allows the largest scale.
Placement Squeeze(const std::vector<Size>& buckets, Size sent, Size scaled) {
  double largest = 0;
  Size best;
  for (const Size bucket : buckets) {
    const double factor = std::min(static_cast<double>(bucket.height) / static_cast<double>(scaled.height),
                                   static_cast<double>(bucket.width) / static_cast<double>(scaled.width));
    if (factor <= largest) continue;
    largest = factor;
    best = bucket;
  }
  const Size fitted = Scale(scaled, largest);
  return {sent, {std::min(fitted.height, best.height), std::min(fitted.width, best.width)}, best};
}

[[noreturn]] void Refuse(const std::string& architecture, const std::string& text, const std::string& why) {
  throw LoadError(architecture + ": option buckets is " + Quote(text) + why +
                  "; expected stride:N, or sizes as HEIGHTxWIDTH,HEIGHTxWIDTH, sides 1 to " +
                  std::to_string(kMaxSide) + ", at most " + std::to_string(kMaxSizes) + " of them");
}

std::optional<int64_t> ParseSide(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || value < 1 || value > kMaxSide) return std::nullopt;
  return value;
}

std::optional<Size> ParseSize(std::string_view text) {
  const size_t cross = text.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  const auto height = ParseSide(text.substr(0, cross));
  const auto width = ParseSide(text.substr(cross + 1));
  if (!height || !width) return std::nullopt;
  return Size{*height, *width};
}

}  // namespace

double LetterboxFactor(const ImageInput& input, Size sent) {
  return std::min(static_cast<double>(input.height) / static_cast<double>(sent.height),
                  static_cast<double>(input.width) / static_cast<double>(sent.width));
}

bool IsFixedSize(const ImageInput& input) { return input.fit != Fit::kKeepRatio; }

Placement PlacementOf(const ImageInput& input, Size sent) {
  if (input.fit == Fit::kLetterbox) return Letterbox(input, sent);
  if (IsFixedSize(input)) {
    const Size whole{input.height, input.width};
    return {sent, whole, whole};
  }
  const Size scaled = ScaleWithin(input, sent);
  if (input.buckets.sizes.empty()) {
    const int64_t stride = input.buckets.stride;
    return {sent, scaled, {RoundUp(scaled.height, stride), RoundUp(scaled.width, stride)}};
  }
  if (const auto bucket = Smallest(input.buckets.sizes, scaled)) return {sent, scaled, *bucket};
  return Squeeze(input.buckets.sizes, sent, scaled);
}

Size SizeBeforeCrop(const ImageInput& input, Size sent) {
  if (input.before_crop != Size{}) return input.before_crop;
  const int64_t side = input.short_side;
  if (sent.width <= sent.height) return {side * sent.height / sent.width, side};
  return {side, side * sent.width / sent.height};
}

int64_t CropShortSide(int64_t input_size) {
  return static_cast<int64_t>(std::lround(static_cast<double>(input_size) * 256 / 224));
}

Placement PlacementOfClip(const ImageInput& input, Size sent, int64_t frames) {
  Placement placement = PlacementOf(input, sent);
  placement.sent_depth = frames;
  placement.depth = RoundUp(frames, input.clip.frame_multiple);
  return placement;
}

Placement PlacementOfVolume(Size sent, int64_t planes) { return {sent, sent, sent, planes, planes}; }

Size LargestInput(const ImageInput& input) {
  if (input.medium == Medium::kVolume) return {};
  if (IsFixedSize(input)) return {input.height, input.width};
  const auto area = [](const Size& size) { return size.height * size.width; };
  const auto largest =
      std::max_element(input.buckets.sizes.begin(), input.buckets.sizes.end(),
                       [&](const Size& one, const Size& other) { return area(one) < area(other); });
  if (largest != input.buckets.sizes.end()) return *largest;
  if (input.either_side) return {RoundUp(input.height, input.multiple), input.long_side};
  const int64_t height =
      input.short_side == 0 ? input.long_side : std::min(input.short_side, input.long_side);
  return {height, input.long_side};
}

std::vector<Placement> PlacementsToWarm(const ImageInput& input) {
  constexpr int64_t kWarmFrames = 64;
  const auto filled = [](Size size, int64_t depth) { return Placement{size, size, size, depth, depth}; };
  const Size nominal = {input.height, input.width};
  if (input.medium == Medium::kVolume) return {filled(nominal, input.volume.depth)};
  const Size bucket = PlacementOf(input, nominal).bucket;
  if (input.medium == Medium::kClip)
    return {
        filled(bucket, PlacementOfClip(input, nominal, std::min(kWarmFrames, input.clip.max_frames)).depth)};
  if (IsFixedSize(input) || input.buckets.sizes.empty()) return {filled(bucket, 1)};
  std::vector<Placement> placements;
  for (const Size size : input.buckets.sizes) placements.push_back(filled(size, 1));
  return placements;
}

Buckets ParseBuckets(const std::string& architecture, const std::string& text) {
  Buckets buckets;
  if (text.starts_with(kStridePrefix)) {
    const auto stride = ParseSide(std::string_view(text).substr(kStridePrefix.size()));
    if (!stride) Refuse(architecture, text, "");
    buckets.stride = *stride;
    return buckets;
  }
  std::string_view left = text;
  while (true) {
    const size_t comma = left.find(',');
    const auto size = ParseSize(left.substr(0, comma));
    if (!size) Refuse(architecture, text, "");
    if (std::find(buckets.sizes.begin(), buckets.sizes.end(), *size) != buckets.sizes.end()) {
      Refuse(architecture, text, ", which names a size twice");
    }
    buckets.sizes.push_back(*size);
    if (buckets.sizes.size() > kMaxSizes) Refuse(architecture, text, "");
    if (comma == std::string_view::npos) return buckets;
    left.remove_prefix(comma + 1);
  }
}

std::string AsText(const Buckets& buckets) {
  if (buckets.sizes.empty()) return std::string(kStridePrefix) + std::to_string(buckets.stride);
  std::string text;
  for (const Size size : buckets.sizes) {
    if (!text.empty()) text += ",";
    text += std::to_string(size.height);
    text += "x";
    text += std::to_string(size.width);
  }
  return text;
}

}  // namespace saccade::models
