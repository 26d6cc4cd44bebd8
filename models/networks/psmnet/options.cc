#include "models/networks/psmnet/options.h"

#include "models/networks/option_reader.h"
#include "models/networks/width.h"

namespace saccade::models {
namespace {

constexpr int64_t kFeatureChannels = 32;

// The hourglasses halve all sides and double them again.
void CheckStereoBuckets(const std::string& architecture, const Buckets& buckets) {
  if (buckets.sizes.empty()) CheckMultiple(architecture, "buckets", buckets.stride, kPsmnetStride);
  for (const Size size : buckets.sizes) {
    CheckMultiple(architecture, "buckets", size.height, kPsmnetStride);
    CheckMultiple(architecture, "buckets", size.width, kPsmnetStride);
  }
}

}  // namespace

int64_t PsmnetOptions::channels() const { return Scaled(kFeatureChannels, width); }

PsmnetOptions ParsePsmnetOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  PsmnetOptions parsed;
  parsed.attention = reader.Choice("attention", "ea", {"ea", "none"}) == "ea";
  parsed.max_disparity = reader.Integer("max_disparity", parsed.max_disparity, kPsmnetStride, 768);
  parsed.key_channels = reader.Integer("key_channels", parsed.key_channels, 1, 512);
  parsed.value_channels = reader.Integer("value_channels", parsed.value_channels, 1, 512);
  parsed.heads = reader.Integer("heads", parsed.heads, 1, 64);
  parsed.normalization = reader.Choice("normalization", parsed.normalization, {"softmax", "scaling"});
  parsed.align_corners = reader.Flag("align_corners", parsed.align_corners);
  parsed.width = reader.Number("width", parsed.width, 0.25, 4);
  parsed.long_side = reader.Integer("long_side", parsed.long_side, 64, 4096);
  parsed.buckets = ParseBuckets(
      architecture, reader.Text("buckets", AsText(parsed.buckets), "stride:N, or sizes as 544x960,384x1248"));
  parsed.exact = reader.Flag("exact", parsed.exact);
  reader.RefuseOthers();
  CheckMultiple(architecture, "max_disparity", parsed.max_disparity, kPsmnetStride);
  CheckStereoBuckets(architecture, parsed.buckets);
  CheckHeads(architecture, parsed.heads, parsed.key_channels, parsed.value_channels);
  return parsed;
}

Options AsText(const PsmnetOptions& options) {
  return {{"attention", options.attention ? "ea" : "none"},
          {"max_disparity", std::to_string(options.max_disparity)},
          {"key_channels", std::to_string(options.key_channels)},
          {"value_channels", std::to_string(options.value_channels)},
          {"heads", std::to_string(options.heads)},
          {"normalization", options.normalization},
          {"align_corners", FlagText(options.align_corners)},
          {"width", NumberText(options.width)},
          {"long_side", std::to_string(options.long_side)},
          {"buckets", AsText(options.buckets)},
          {"exact", FlagText(options.exact)}};
}

}  // namespace saccade::models
