#include "models/networks/unet3d/options.h"

#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

constexpr int64_t kRegularMaxVoxels = int64_t{1} << 18;

const char* NameOf(UnetAttention attention) {
  switch (attention) {
    case UnetAttention::kNone:
      return "none";
    case UnetAttention::kSiamese:
      return "sao";
    case UnetAttention::kRegular:
      return "attn";
  }
  return "";
}

UnetAttention ReadAttention(OptionReader& reader) {
  const std::string name = reader.Choice("attention", "sao", {"sao", "attn", "none"});
  if (name == "none") return UnetAttention::kNone;
  return name == "sao" ? UnetAttention::kSiamese : UnetAttention::kRegular;
}

}  // namespace

UnetOptions ParseUnetOptions(const std::string& architecture, const Options& options) {
  OptionReader reader(architecture, options);
  UnetOptions parsed;
  parsed.projects = architecture.ends_with("_project");
  parsed.attention = ReadAttention(reader);
  if (parsed.attention == UnetAttention::kRegular) parsed.max_voxels = kRegularMaxVoxels;
  parsed.learned = reader.Choice("similarity", "learned", {"learned", "ones"}) == "learned";
  parsed.global_term = reader.Flag("global_term", parsed.global_term);
  parsed.heads = reader.PowerOfTwoHeads(parsed.heads);
  parsed.percentile = reader.Choice("normalize", "percentile", {"percentile", "none"}) == "percentile";
  parsed.residual = reader.Flag("residual", parsed.residual);
  parsed.width = reader.Number("width", parsed.width, 0.25, 4);
  parsed.tile = reader.Integer("tile", parsed.tile, 0, 4096);
  parsed.max_voxels = reader.Integer("max_voxels", parsed.max_voxels, 4096, int64_t{1} << 31);
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const UnetOptions& options) {
  return {{"attention", NameOf(options.attention)},
          {"similarity", options.learned ? "learned" : "ones"},
          {"global_term", FlagText(options.global_term)},
          {"heads", std::to_string(options.heads)},
          {"normalize", options.percentile ? "percentile" : "none"},
          {"residual", FlagText(options.residual)},
          {"width", NumberText(options.width)},
          {"tile", std::to_string(options.tile)},
          {"max_voxels", std::to_string(options.max_voxels)}};
}

}  // namespace saccade::models
