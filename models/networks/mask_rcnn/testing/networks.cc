#include "models/networks/mask_rcnn/testing/networks.h"

#include <ATen/ops/rand.h>

#include "models/networks/mask_rcnn/table.h"
#include "models/testing/random_weights.h"

namespace saccade::models::testing {
namespace {

bool IsNorm(const std::string& name) {
  return name.find(".bn") != std::string::npos || name.find("downsample.1.") != std::string::npos;
}

// Factor for random weights of the usual size.
double Strength(const std::string& name) {
  if (name.find(".attention.") != std::string::npos && name.ends_with("out.weight")) return 0.1;
  if (name == "rpn.head.bbox_pred.weight") return 0.05;
  if (name == "roi_heads.box_predictor.bbox_pred.weight") return 0.2;
  if (name == "roi_heads.box_predictor.cls_score.weight") return 0.3;
  return 1;
}

}  // namespace

Options NarrowMaskRcnn(const Options& more) {
  Options options = {{"width", "0.125"},      {"blocks", "1,1,2,1"}, {"classes", "4"},
                     {"proposals", "150"},    {"detections", "30"},  {"key_channels", "16"},
                     {"value_channels", "16"}};
  for (const auto& [name, value] : more) options[name] = value;
  return options;
}

TensorMap MaskRcnnTensors(const std::string& architecture, const Options& options) {
  Ledger ledger;
  RecordMaskRcnn(MakeMaskRcnnTable(architecture, ParseMaskRcnnOptions(architecture, options)), ledger);
  TensorMap tensors = RandomTensors(ledger.tensors());
  for (auto& [name, tensor] : tensors) {
    if (IsNorm(name) && name.ends_with(".weight")) tensor = at::rand(tensor.sizes()).add(0.5);
    tensor.mul_(Strength(name));
  }
  return tensors;
}

}  // namespace saccade::models::testing
