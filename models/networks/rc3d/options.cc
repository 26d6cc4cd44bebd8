#include "models/networks/rc3d/options.h"

#include "models/networks/option_reader.h"

namespace saccade::models {

Rc3dOptions ParseRc3dOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  Rc3dOptions parsed;
  parsed.attention =
      reader.Several("attention", NamesText(parsed.attention), {"res1", "res2", "res3", "res4"});
  parsed.normalization = reader.Choice("normalization", parsed.normalization, {"softmax", "scaling"});
  parsed.heads = reader.Integer("heads", parsed.heads, 1, 64);
  parsed.key_channels = reader.Integer("key_channels", parsed.key_channels, 1, 1024);
  parsed.value_channels = reader.Integer("value_channels", parsed.value_channels, 1, 1024);
  CheckHeads(architecture, parsed.heads, parsed.key_channels, parsed.value_channels);
  parsed.classes = reader.Integer("classes", parsed.classes, 2, 10'000);
  parsed.frames = reader.Integer("frames", parsed.frames, kRc3dStride, 4096);
  CheckMultiple(architecture, "frames", parsed.frames, kRc3dStride);
  parsed.size = reader.Integer("size", parsed.size, 2 * kRc3dStride, 512);
  CheckMultiple(architecture, "size", parsed.size, kRc3dStride);
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
  return {{"attention", NamesText(options.attention)},
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
