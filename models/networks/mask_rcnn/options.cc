#include "models/networks/mask_rcnn/options.h"

#include <algorithm>

#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

constexpr const char* kPlaceNames[kAttentionPlaces] = {"res3", "res4", "fpn1", "fpn2",
                                                       "fpn3", "fpn4", "fpn5"};

// ResNeXt's groups have a fixed width, so that only these keep them whole.
void CheckResnextWidth(const std::string& architecture, double width) {
  if (width != 0.125 && width != 0.25 && width != 0.5 && width != 1)
    RefuseOption(architecture, "width", NumberText(width), "0.125, 0.25, 0.5 or 1");
}

// The stem halves a side twice and must leave at least one position.
void CheckBuckets(const std::string& architecture, const Buckets& buckets) {
  constexpr int64_t kMinSide = 4;
  bool fits = !buckets.sizes.empty() || buckets.stride >= kMinSide;
  for (const Size size : buckets.sizes) fits = fits && size.height >= kMinSide && size.width >= kMinSide;
  if (!fits) RefuseOption(architecture, "buckets", AsText(buckets), "a stride, or sides, of at least 4");
}

}  // namespace

const char* PlaceName(AttentionPlace place) { return kPlaceNames[static_cast<size_t>(place)]; }

bool IsResnext(const std::string& architecture) { return architecture == "ea_mask_rcnn_x101"; }

bool MaskRcnnOptions::Attends(AttentionPlace place) const {
  return std::find(attention.begin(), attention.end(), place) != attention.end();
}

MaskRcnnOptions ParseMaskRcnnOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  MaskRcnnOptions parsed;
  if (architecture == "maskrcnn_resnet50_fpn") {
    parsed.paper_pyramid = false;
    parsed.attention = {};
    parsed.batch_norm_epsilon = 0;
  } else if (architecture != "ea_mask_rcnn_r50") {
    parsed.blocks = {3, 4, 23, 3};
  }
  const Options preset = AsText(parsed);
  parsed.paper_pyramid = reader.Choice("fpn", preset.at("fpn"), {"paper", "torchvision"}) == "paper";
  const std::vector<std::string> names(std::begin(kPlaceNames), std::end(kPlaceNames));
  parsed.attention.clear();
  for (const std::string& name : reader.Several("attention", preset.at("attention"), names)) {
    parsed.attention.push_back(
        static_cast<AttentionPlace>(std::find(names.begin(), names.end(), name) - names.begin()));
  }
  parsed.efficient = reader.Choice("operator", "efficient", {"efficient", "non_local"}) == "efficient";
  parsed.softmax = reader.Choice("normalization", "softmax", {"softmax", "scaling"}) == "softmax";
  parsed.heads = reader.Integer("heads", parsed.heads, 1, 64);
  parsed.key_channels = reader.Integer("key_channels", parsed.key_channels, 1, 1024);
  parsed.value_channels = reader.Integer("value_channels", parsed.value_channels, 1, 1024);
  CheckHeads(architecture, parsed.heads, parsed.key_channels, parsed.value_channels);
  parsed.classes = reader.Integer("classes", parsed.classes, 2, 10'000);
  parsed.short_side = reader.Integer("short_side", parsed.short_side, 32, 4096);
  parsed.long_side = reader.Integer("long_side", parsed.long_side, 32, 8192);
  parsed.buckets = ParseBuckets(
      architecture, reader.Text("buckets", preset.at("buckets"), "stride:N, or sizes as 800x1344,1344x800"));
  CheckBuckets(architecture, parsed.buckets);
  parsed.reduced_jpeg = reader.Flag("reduced_jpeg", parsed.reduced_jpeg);
  parsed.score_threshold = reader.Number("score_threshold", parsed.score_threshold, 0, 1);
  parsed.nms_threshold = reader.Number("nms_threshold", parsed.nms_threshold, 0, 1);
  parsed.detections = reader.Integer("detections", parsed.detections, 1, 1000);
  parsed.proposals = reader.Integer("proposals", parsed.proposals, 1, 10'000);
  parsed.batch_norm_epsilon = reader.Number("batch_norm_epsilon", parsed.batch_norm_epsilon, 0, 0.1);
  parsed.exact = reader.Flag("exact", parsed.exact);
  parsed.width = reader.Number("width", parsed.width, 0.125, 1);
  IsResnext(architecture) ? CheckResnextWidth(architecture, parsed.width)
                          : CheckWidth(architecture, parsed.width);
  parsed.blocks = reader.Blocks(parsed.blocks);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const MaskRcnnOptions& options) {
  std::vector<std::string> places;
  for (const AttentionPlace place : options.attention) places.emplace_back(PlaceName(place));
  return {{"fpn", options.paper_pyramid ? "paper" : "torchvision"},
          {"attention", NamesText(places)},
          {"operator", options.efficient ? "efficient" : "non_local"},
          {"normalization", options.softmax ? "softmax" : "scaling"},
          {"heads", std::to_string(options.heads)},
          {"key_channels", std::to_string(options.key_channels)},
          {"value_channels", std::to_string(options.value_channels)},
          {"classes", std::to_string(options.classes)},
          {"short_side", std::to_string(options.short_side)},
          {"long_side", std::to_string(options.long_side)},
          {"buckets", AsText(options.buckets)},
          {"reduced_jpeg", FlagText(options.reduced_jpeg)},
          {"score_threshold", NumberText(options.score_threshold)},
          {"nms_threshold", NumberText(options.nms_threshold)},
          {"detections", std::to_string(options.detections)},
          {"proposals", std::to_string(options.proposals)},
          {"batch_norm_epsilon", NumberText(options.batch_norm_epsilon)},
          {"exact", FlagText(options.exact)},
          {"width", NumberText(options.width)},
          {"blocks", ListText(options.blocks)}};
}

}  // namespace saccade::models
