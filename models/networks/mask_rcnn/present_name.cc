#include "models/networks/mask_rcnn/present_name.h"

#include <array>
#include <string_view>

namespace saccade::models {
namespace {

// Before 2022, torchvision had a convolution where it now has a block that contains one.
struct Renaming {
  std::string_view before;  // for the pyramid's two, a level follows
  std::string_view after;
};

constexpr std::array<std::string_view, 2> kPyramidBlocks = {"backbone.fpn.inner_blocks.",
                                                            "backbone.fpn.layer_blocks."};
constexpr std::array<Renaming, 2> kProposalConvolution = {
    {{"rpn.head.conv.weight", "rpn.head.conv.0.0.weight"}, {"rpn.head.conv.bias", "rpn.head.conv.0.0.bias"}}};
constexpr std::string_view kMaskLayer = "roi_heads.mask_head.mask_fcn";

bool IsParameter(std::string_view name) { return name == "weight" || name == "bias"; }

// Turns "3.weight" into PREFIX + "3.0.weight", renumbered from `first`; returns "" for any other name.
std::string WithinBlock(std::string_view prefix, std::string_view rest, int first) {
  if (rest.size() < 3 || rest[1] != '.' || !IsParameter(rest.substr(2))) return "";
  const int number = rest[0] - '0' - first;
  if (number < 0 || number > 3) return "";
  return std::string(prefix) + std::to_string(number) + ".0." + std::string(rest.substr(2));
}

}  // namespace

std::string PresentName(const std::string& name) {
  const std::string_view text = name;
  std::string present;
  for (const std::string_view block : kPyramidBlocks) {
    if (text.starts_with(block)) present = WithinBlock(block, text.substr(block.size()), 0);
  }
  for (const Renaming& renaming : kProposalConvolution) {
    if (text == renaming.before) present = renaming.after;
  }
  if (text.starts_with(kMaskLayer)) {
    present = WithinBlock("roi_heads.mask_head.", text.substr(kMaskLayer.size()), 1);
  }
  return present.empty() ? name : present;
}

}  // namespace saccade::models
