#include "models/networks/recognise.h"

#include <algorithm>
#include <array>
#include <map>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/networks/nearest.h"
#include "models/networks/option_reader.h"
#include "models/weights/format/weights_format.h"

namespace saccade::models {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

struct Depth {
  const char* name;
  std::array<int64_t, 4> blocks;
  bool basic;
};

constexpr std::array<Depth, 5> kResnets = {{{"resnet18", {2, 2, 2, 2}, true},
                                            {"resnet34", {3, 4, 6, 3}, true},
                                            {"resnet50", {3, 4, 6, 3}, false},
                                            {"resnet101", {3, 4, 23, 3}, false},
                                            {"resnet152", {3, 8, 36, 3}, false}}};

// Rows of a matrix or length of a vector, 0 if there is no such tensor.
int64_t RowsOf(const Shapes& shapes, const std::string& name) {
  const auto found = shapes.find(name);
  return found == shapes.end() || found->second.empty() ? 0 : found->second.front();
}

// Number of residual blocks of each stage.
std::array<int64_t, 4> BlocksOf(const Shapes& shapes, const std::string& prefix) {
  std::array<int64_t, 4> blocks{};
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::string layer = prefix + "layer" + std::to_string(stage + 1) + ".";
    while (shapes.contains(layer + std::to_string(blocks[stage]) + ".conv1.weight")) ++blocks[stage];
  }
  return blocks;
}

void SetClasses(Recognised& found, int64_t classes, int64_t preset) {
  found.classes = classes;
  if (classes != preset) found.options["classes"] = std::to_string(classes);
}

bool IsResnet(const Shapes& shapes, Recognised& found) {
  const int64_t classes = RowsOf(shapes, "fc.weight");
  const std::array<int64_t, 4> blocks = BlocksOf(shapes, "");
  if (classes == 0 || RowsOf(shapes, "conv1.weight") != 64 || blocks[3] == 0) return false;
  const bool basic = !shapes.contains("layer1.0.conv3.weight");
  const auto same = std::find_if(kResnets.begin(), kResnets.end(), [&](const Depth& depth) {
    return depth.blocks == blocks && depth.basic == basic;
  });
  found.architecture = same != kResnets.end() ? same->name : basic ? "resnet34" : "resnet50";
  if (same == kResnets.end()) found.options["blocks"] = ListText(blocks);
  SetClasses(found, classes, 1000);
  return true;
}

bool IsMobileNet(const Shapes& shapes, Recognised& found) {
  const int64_t classes = RowsOf(shapes, "classifier.1.weight");
  if (classes == 0 || !shapes.contains("features.18.0.weight")) return false;
  found.architecture = "mobilenet_v2";
  SetClasses(found, classes, 1000);
  return true;
}

bool IsMaskRcnn(const Shapes& shapes, Recognised& found) {
  const int64_t classes = RowsOf(shapes, "roi_heads.box_predictor.cls_score.weight");
  if (classes == 0 || RowsOf(shapes, "roi_heads.mask_predictor.mask_fcn_logits.weight") == 0) return false;
  if (BlocksOf(shapes, "backbone.body.") != kResnets[2].blocks) return false;
  found.architecture = "maskrcnn_resnet50_fpn";
  SetClasses(found, classes, 91);
  found.notes.emplace_back(
      "batch_norm_epsilon is 0, as torchvision's COCO weights want it; set it to 1e-5 for a network that was "
      "built with weights=None");
  return true;
}

[[noreturn]] void FailToRecognise(const Shapes& shapes, const std::vector<TensorEntry>& entries) {
  std::string names;
  size_t left = 5;
  for (const auto& [name, shape] : shapes) {
    if (left-- == 0) break;
    names += (names.empty() ? "" : ", ") + Quote(name) + " " + ShapeText(shape);
  }
  const std::string nearest = NearestText(Nearest(entries));
  throw LoadError("no network is recognised by its " + std::to_string(shapes.size()) + " tensors (" + names +
                  ", ...)" + (nearest.empty() ? "" : "; " + nearest) +
                  "; torchvision's resnet18 to resnet152, mobilenet_v2 and maskrcnn_resnet50_fpn are; "
                  "name another architecture with --architecture");
}

}  // namespace

Recognised Recognise(const std::vector<TensorEntry>& entries) {
  const std::string prefix = WrappersPrefix(entries);
  Shapes shapes;
  for (const TensorEntry& entry : entries) shapes[entry.name.substr(prefix.size())] = entry.shape;
  Recognised found;
  if (!prefix.empty()) {
    found.notes.push_back("all " + std::to_string(entries.size()) + " names carry the prefix " +
                          Quote(prefix) + ", which the daemon passes over");
  }
  if (!IsResnet(shapes, found) && !IsMobileNet(shapes, found) && !IsMaskRcnn(shapes, found))
    FailToRecognise(shapes, entries);
  return found;
}

}  // namespace saccade::models
