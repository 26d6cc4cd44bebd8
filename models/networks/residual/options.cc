#include "models/networks/residual/options.h"

#include <vector>

#include "models/api/error.h"
#include "models/networks/explicit_maps.h"
#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

struct Depth {
  const char* name;  // suffix of the architecture's name
  bool basic;
  std::array<int64_t, 4> blocks;
};

constexpr std::array<Depth, 5> kDepths = {{{"resnet34", true, {3, 4, 6, 3}},
                                           {"resnet38", false, {2, 3, 5, 2}},
                                           {"resnet50", false, {3, 4, 6, 3}},
                                           {"resnet101", false, {3, 4, 23, 3}},
                                           {"resnet152", false, {3, 8, 36, 3}}}};

const std::vector<std::string> kGroups = {"1-4", "2-4", "3-4", "4"};

const Depth& DepthOf(const std::string& architecture) {
  for (const Depth& depth : kDepths) {
    if (architecture.ends_with(depth.name)) return depth;
  }
  throw LoadError(architecture + " is not a residual classifier; this is a bug in saccade");
}

bool IsExpAtt(const std::string& architecture) { return architecture.starts_with("expatt_"); }

}  // namespace

ResidualOptions ParseResidualOptions(const std::string& architecture, const Options& options) {
  const Depth& depth = DepthOf(architecture);
  const bool expatt = IsExpAtt(architecture);
  OptionReader reader(architecture, options);
  ResidualOptions parsed;
  parsed.basic = depth.basic;
  const std::string own = expatt ? "expatt" : "gsa";
  const Spatial kind = expatt ? Spatial::kExpAtt : Spatial::kGsa;
  parsed.attention = reader.Choice("attention", own, {own, "none"}) == own ? kind : Spatial::kConvolution;
  if (expatt) {
    parsed.map = reader.Choice("map", "gaussian", ExplicitMaps());
    parsed.cifar = reader.Choice("form", "imagenet", {"imagenet", "cifar"}) == "cifar";
  } else {
    parsed.content = reader.Choice("content", "global", {"global", "axial", "none"});
    parsed.heads = reader.PowerOfTwoHeads(parsed.heads);
  }
  // ExpAtt's paper has attention in the last three stages, and on CIFAR in all four; GSA's in all.
  const std::string groups = reader.Choice("groups", expatt && !parsed.cifar ? "2-4" : "1-4", kGroups);
  parsed.first_group = groups.front() - '0';
  parsed.blocks = reader.Blocks(depth.blocks, 100);
  parsed.classes = reader.Integer("classes", parsed.classes, 1, 100'000);
  parsed.width = reader.Number("width", parsed.width, 0.1, 4);
  parsed.input_size = reader.Integer("input_size", parsed.cifar ? 32 : 224, 32, 1024);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const std::string& architecture, const ResidualOptions& options) {
  const bool expatt = IsExpAtt(architecture);
  Options text = {{"attention", options.attention == Spatial::kConvolution ? "none"
                                : expatt                                   ? "expatt"
                                                                           : "gsa"},
                  {"groups", kGroups.at(static_cast<size_t>(options.first_group - 1))},
                  {"blocks", ListText(options.blocks)},
                  {"classes", std::to_string(options.classes)},
                  {"width", NumberText(options.width)},
                  {"input_size", std::to_string(options.input_size)}};
  if (expatt) {
    text["map"] = options.map;
    text["form"] = options.cifar ? "cifar" : "imagenet";
  } else {
    text["content"] = options.content;
    text["heads"] = std::to_string(options.heads);
  }
  return text;
}

}  // namespace saccade::models
