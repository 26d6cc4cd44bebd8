#include "models/networks/rc3d/options.h"

#include <cmath>

#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

std::string PlacesText(const std::vector<std::string>& places) {
  std::string text;
  for (const std::string& place : places) {
    if (!text.empty()) text += ",";
    text += place;
  }
  return text.empty() ? "none" : text;
}

void CheckMultiple(const std::string& architecture, const std::string& option, int64_t value) {
  if (value % kRc3dStride == 0) return;
  RefuseOption(architecture, option, std::to_string(value), "a multiple of " + std::to_string(kRc3dStride));
}

// Keeps all channels multiples of 8.
void CheckWidth(const std::string& architecture, double width) {
  if (width * 8 != std::floor(width * 8))
    RefuseOption(architecture, "width", NumberText(width), "a multiple of 0.125 up to 1");
}

}  // namespace

Rc3dOptions ParseRc3dOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  Rc3dOptions parsed;
  parsed.attention = reader.Several("attention", PlacesText(parsed.attention), parsed.attention);
  parsed.normalization = reader.Choice("normalization", parsed.normalization, {"softmax", "scaling"});
  parsed.heads = reader.Integer("heads", parsed.heads, 1, 64);
  parsed.key_channels = reader.Integer("key_channels", parsed.key_channels, 1, 1024);
  parsed.value_channels = reader.Integer("value_channels", parsed.value_channels, 1, 1024);
  CheckHeads(architecture, parsed.heads, parsed.key_channels, parsed.value_channels);
  parsed.classes = reader.Integer("classes", parsed.classes, 2, 10'000);
  parsed.frames = reader.Integer("frames", parsed.frames, kRc3dStride, 4096);
  CheckMultiple(architecture, "frames", parsed.frames);
  parsed.size = reader.Integer("size", parsed.size, 2 * kRc3dStride, 512);
  CheckMultiple(architecture, "size", parsed.size);
  parsed.frames_per_second = reader.Number("frames_per_second", parsed.frames_per_second, 1, 240);
  parsed.anchors = reader.Integers("anchors", parsed.anchors, {1, 512}, {1, 64});
  parsed.score_threshold = reader.Number("score_threshold", parsed.score_threshold, 0, 1);
  parsed.nms_threshold = reader.Number("nms_threshold", parsed.nms_threshold, 0, 1);
  parsed.detections = reader.Integer("detections", parsed.detections, 1, 1000);
  parsed.proposals = reader.Integer("proposals", parsed.proposals, 1, 2000);
  parsed.width = reader.Number("width", parsed.width, 0.125, 1);
  CheckWidth(architecture, parsed.width);
  parsed.blocks = reader.Blocks(parsed.blocks);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const Rc3dOptions& options) {
  return {{"attention", PlacesText(options.attention)},
          {"normalization", options.normalization},
          {"heads", std::to_string(options.heads)},
          {"key_channels", std::to_string(options.key_channels)},
          {"value_channels", std::to_string(options.value_channels)},
          {"classes", std::to_string(options.classes)},
          {"frames", std::to_string(options.frames)},
          {"size", std::to_string(options.size)},
          {"frames_per_second", NumberText(options.frames_per_second)},
          {"anchors", ListText(options.anchors)},
          {"score_threshold", NumberText(options.score_threshold)},
          {"nms_threshold", NumberText(options.nms_threshold)},
          {"detections", std::to_string(options.detections)},
          {"proposals", std::to_string(options.proposals)},
          {"width", NumberText(options.width)},
          {"blocks", ListText(options.blocks)}};
}

}  // namespace saccade::models
