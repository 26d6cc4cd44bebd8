#include "models/networks/mobile/options.h"

#include <array>
#include <utility>
#include <vector>

#include "models/api/error.h"
#include "models/layers/explicit_maps.h"
#include "models/networks/option_reader.h"
#include "models/networks/picture_options.h"

namespace saccade::models {
namespace {

using Attention = MobileAttention;

// An architecture's names of attention kinds; the first is its default.
using Choices = std::vector<std::pair<std::string, Attention>>;

struct Variant {
  const char* name;
  Choices choices;
  int64_t heads;
  bool mobilenet;  // built from MobileNetV2's modules
  bool attention_skip;
  bool plain_without_attention;
};

const std::array<Variant, 11>& Variants() {
  // Only SANet's paper states the number of heads.
  static const std::array<Variant, 11> all = {{
      {"attnnet", {{"on", Attention::kSoftmax}}, 1, false, true, true},
      {"attnnet_1n", {{"on", Attention::kOverN}}, 1, false, true, true},
      {"attnnet_pool", {{"on", Attention::kPool}}, 1, false, true, true},
      {"expatt_mobilenetv2", {}, 1, true, false, true},
      {"kanet_kv", {{"kao", Attention::kKroneckerKv}}, 1, false, true, true},
      {"kanet_qkv", {{"kao", Attention::kKroneckerQkv}}, 1, false, true, true},
      {"mobilenet_v2", {}, 1, true, false, true},
      {"mobilenetv2", {}, 1, true, false, true},
      // KANet's paper uses "AttnModules as described in Section 3.5", which have no skip around the
      // attention.
      {"mobilenetv2_kao",
       {{"kv", Attention::kKroneckerKv}, {"qkv", Attention::kKroneckerQkv}},
       1,
       true,
       false,
       true},
      {"mobilenetv2_sao", {{"sao", Attention::kSiamese}}, 4, true, true, true},
      {"sanet", {{"sao", Attention::kSiamese}, {"se", Attention::kSqueeze}}, 4, false, true, false},
  }};
  return all;
}

const Variant& VariantOf(const std::string& name) {
  for (const Variant& variant : Variants()) {
    if (name == variant.name) return variant;
  }
  throw LoadError(name + " is not a mobile network; this is a bug in saccade");
}

Attention ReadAttention(const Variant& variant, OptionReader& reader) {
  if (variant.choices.empty()) return Attention::kNone;
  std::vector<std::string> names;
  for (const auto& [name, attention] : variant.choices) names.push_back(name);
  names.emplace_back("none");
  const std::string chosen = reader.Choice("attention", names.front(), names);
  for (const auto& [name, attention] : variant.choices) {
    if (name == chosen) return attention;
  }
  return Attention::kNone;
}

bool IsExpAtt(const std::string& name) { return name == "expatt_mobilenetv2"; }

PictureDefaults PicturesOf(const std::string& name) {
  if (name == "mobilenet_v2") return TorchvisionPictures(232);
  return {};
}

bool HasSiamese(const Variant& variant) {
  return !variant.choices.empty() && variant.choices.front().second == Attention::kSiamese;
}

bool HasSqueeze(const Variant& variant) {
  return !variant.choices.empty() && variant.choices.back().second == Attention::kSqueeze;
}

}  // namespace

MobileOptions ParseMobileOptions(const std::string& name, const Options& options) {
  const Variant& variant = VariantOf(name);
  OptionReader reader(name, options);
  MobileOptions parsed;
  parsed.keeps_input = !variant.mobilenet;
  parsed.attention_skip = variant.attention_skip;
  parsed.plain_without_attention = variant.plain_without_attention;
  parsed.attention = ReadAttention(variant, reader);
  if (HasSiamese(variant)) {
    parsed.learned = reader.Choice("similarity", "learned", {"learned", "ones"}) == "learned";
    parsed.global_term = reader.Flag("global_term", parsed.global_term);
  }
  if (HasSqueeze(variant)) {
    parsed.reduction = reader.Integer("reduction", parsed.reduction, 1, 64);
  }
  if (IsExpAtt(name)) {
    const std::string map = reader.Choice("map", "gaussian", ExplicitMaps());
    if (reader.Choice("attention", "expatt", {"expatt", "none"}) == "expatt") parsed.map = map;
  }
  if (!variant.choices.empty()) {
    parsed.heads = reader.PowerOfTwoHeads(variant.heads);
  }
  parsed.classes = reader.Integer("classes", parsed.classes, 1, 100'000);
  parsed.width = reader.Number("width", parsed.width, 0.1, 4);
  parsed.pictures = ReadPictureOptions(reader, PicturesOf(name));
  parsed.input_size = parsed.pictures.height;
  reader.RefuseOthers();
  return parsed;
}

Options AsText(const std::string& name, const MobileOptions& options) {
  const Variant& variant = VariantOf(name);
  Options text = {{"classes", std::to_string(options.classes)}, {"width", NumberText(options.width)}};
  AddPictureOptions(options.pictures, PicturesOf(name), text);
  if (IsExpAtt(name)) {
    text["attention"] = options.map.empty() ? "none" : "expatt";
    if (!options.map.empty()) text["map"] = options.map;
  }
  if (variant.choices.empty()) return text;
  text["attention"] = "none";
  for (const auto& [word, attention] : variant.choices) {
    if (attention == options.attention) text["attention"] = word;
  }
  text["heads"] = std::to_string(options.heads);
  if (HasSiamese(variant)) {
    text["similarity"] = options.learned ? "learned" : "ones";
    text["global_term"] = FlagText(options.global_term);
  }
  if (HasSqueeze(variant)) text["reduction"] = std::to_string(options.reduction);
  return text;
}

}  // namespace saccade::models
