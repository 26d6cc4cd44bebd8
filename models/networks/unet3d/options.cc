#include "models/networks/unet3d/options.h"

#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

const char* Flag(bool value) { return value ? "true" : "false"; }

bool ReadFlag(OptionReader& reader, const std::string& name, bool otherwise) {
  return reader.Choice(name, Flag(otherwise), {"true", "false"}) == "true";
}

}  // namespace

UnetOptions ParseUnetOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  UnetOptions parsed;
  parsed.projects = architecture.ends_with("_project");
  parsed.attention = reader.Choice("attention", "sao", {"sao", "none"}) == "sao";
  parsed.learned = reader.Choice("similarity", "learned", {"learned", "ones"}) == "learned";
  parsed.global_term = ReadFlag(reader, "global_term", parsed.global_term);
  parsed.heads = std::stoll(reader.Choice("heads", "1", {"1", "2", "4", "8"}));
  parsed.percentile = reader.Choice("normalize", "percentile", {"percentile", "none"}) == "percentile";
  parsed.residual = ReadFlag(reader, "residual", parsed.residual);
  parsed.width = reader.Number("width", parsed.width, 0.25, 4);
  parsed.tile = reader.Integer("tile", parsed.tile, 0, 4096);
  parsed.max_voxels = reader.Integer("max_voxels", parsed.max_voxels, 4096, int64_t{1} << 31);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const UnetOptions& options) {
  return {{"attention", options.attention ? "sao" : "none"},
          {"similarity", options.learned ? "learned" : "ones"},
          {"global_term", Flag(options.global_term)},
          {"heads", std::to_string(options.heads)},
          {"normalize", options.percentile ? "percentile" : "none"},
          {"residual", Flag(options.residual)},
          {"width", NumberText(options.width)},
          {"tile", std::to_string(options.tile)},
          {"max_voxels", std::to_string(options.max_voxels)}};
}

}  // namespace saccade::models
