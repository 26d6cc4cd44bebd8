#include "models/networks/residual/options.h"

#include <vector>

#include "models/api/error.h"
#include "models/layers/explicit_maps.h"
#include "models/networks/option_reader.h"
#include "models/networks/picture_options.h"

namespace saccade::models {
namespace {

struct Depth {
  const char* name;  // suffix of the architecture's name
  bool basic;
  std::array<int64_t, 4> blocks;
};

constexpr std::array<Depth, 6> kDepths = {{{"resnet18", true, {2, 2, 2, 2}},
                                           {"resnet34", true, {3, 4, 6, 3}},
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

bool IsTorchvisions(const std::string& architecture) { return architecture.starts_with("resnet"); }

// GSA's paper has one axis or none beside the content (table 4), and the content along both axes (table 2).
void CheckAxes(const std::string& architecture, const ResidualOptions& options) {
  const bool legal = options.content == "global" || options.axes == "both" ||
                     (options.content == "none" && options.axes != "none");
  if (legal) return;
  RefuseOption(architecture, "axes", options.axes,
               std::string(options.content == "none" ? "both, column or row" : "both") + " with content " +
                   options.content + ", or any with content global");
}

PictureDefaults PicturesOf(const std::string& architecture, bool cifar) {
  if (IsTorchvisions(architecture)) {
    // torchvision has no second weights of the small ones.
    const bool small = architecture == "resnet18" || architecture == "resnet34";
    return TorchvisionPictures(small ? 256 : 232);
  }
  // CIFAR's pictures are used whole.
  if (cifar) return {.size = 32, .resize_for_224 = 224};
  return {};
}

void ReadAttention(const std::string& architecture, OptionReader& reader, ResidualOptions& parsed) {
  const bool expatt = IsExpAtt(architecture);
  const std::string own = expatt ? "expatt" : "gsa";
  const Spatial kind = expatt ? Spatial::kExpAtt : Spatial::kGsa;
  parsed.attention = reader.Choice("attention", own, {own, "none"}) == own ? kind : Spatial::kConvolution;
  if (expatt) {
    parsed.map = reader.Choice("map", "gaussian", ExplicitMaps());
    parsed.plus_one = reader.Flag("plus_one", parsed.plus_one);
    parsed.shared_map = reader.Flag("shared_map", parsed.shared_map);
    if (!parsed.shared_map && !HasRadius(parsed.map)) {
      RefuseOption(architecture, "shared_map", "false",
                   "true with map " + parsed.map + ", which has no radius for heads to differ in");
    }
    parsed.cifar = reader.Choice("form", "imagenet", {"imagenet", "cifar"}) == "cifar";
  } else {
    parsed.content = reader.Choice("content", "global", {"global", "axial", "none"});
    parsed.axes = reader.Choice("axes", parsed.axes, {"both", "column", "row", "none"});
    CheckAxes(architecture, parsed);
    parsed.heads = reader.PowerOfTwoHeads(parsed.heads);
    parsed.transform_norms = reader.Flag("transform_norms", parsed.transform_norms);
    parsed.expansion = reader.Choice("expansion", "4", {"4", "2"}) == "2" ? 2 : 4;
  }
  // ExpAtt's paper has attention in the last three stages, and on CIFAR in all four; GSA's in all.
  const std::string groups = reader.Choice("groups", expatt && !parsed.cifar ? "2-4" : "1-4", kGroups);
  parsed.first_group = groups.front() - '0';
}

}  // namespace

ResidualOptions ParseResidualOptions(const std::string& architecture, const Options& options) {
  const Depth& depth = DepthOf(architecture);
  OptionReader reader(architecture, options);
  ResidualOptions parsed;
  parsed.basic = depth.basic;
  if (!IsTorchvisions(architecture)) ReadAttention(architecture, reader, parsed);
  parsed.blocks = reader.Blocks(depth.blocks, 100);
  parsed.classes = reader.Integer("classes", parsed.classes, 1, 100'000);
  parsed.width = reader.Number("width", parsed.width, 0.1, 4);
  parsed.pictures = ReadPictureOptions(reader, PicturesOf(architecture, parsed.cifar));
  parsed.input_size = parsed.pictures.height;
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const std::string& architecture, const ResidualOptions& options) {
  Options text = {{"blocks", ListText(options.blocks)},
                  {"classes", std::to_string(options.classes)},
                  {"width", NumberText(options.width)}};
  AddPictureOptions(options.pictures, PicturesOf(architecture, options.cifar), text);
  if (IsTorchvisions(architecture)) return text;
  const bool expatt = IsExpAtt(architecture);
  const bool plain = options.attention == Spatial::kConvolution;
  text["attention"] = plain ? "none" : expatt ? "expatt" : "gsa";
  text["groups"] = kGroups.at(static_cast<size_t>(options.first_group - 1));
  if (expatt) {
    text["map"] = options.map;
    text["plus_one"] = FlagText(options.plus_one);
    text["shared_map"] = FlagText(options.shared_map);
    text["form"] = options.cifar ? "cifar" : "imagenet";
  } else {
    text["content"] = options.content;
    text["axes"] = options.axes;
    text["heads"] = std::to_string(options.heads);
    text["transform_norms"] = FlagText(options.transform_norms);
    text["expansion"] = std::to_string(options.expansion);
  }
  return text;
}

}  // namespace saccade::models
