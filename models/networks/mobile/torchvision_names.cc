#include "models/networks/mobile/torchvision_names.h"

#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace saccade::models {
namespace {

// Beginnings of names: torchvision's and ours.
using Layer = std::pair<std::string_view, std::string_view>;

constexpr Layer kClassifier = {"classifier.1.", "classifier."};
constexpr std::string_view kFeatures = "features.";
constexpr std::string_view kBlocks = "blocks.";
constexpr int kHeadIndex = 18;
// The stem and the head.
constexpr Layer kOuter[] = {{"0.", "conv."}, {"1.", "bn."}};
// The first block has an expansion by 1, and so no expand layer.
constexpr Layer kFirst[] = {{"conv.0.0.", "depthwise.conv."},
                            {"conv.0.1.", "depthwise.bn."},
                            {"conv.1.", "project.conv."},
                            {"conv.2.", "project.bn."}};
constexpr Layer kOthers[] = {{"conv.0.0.", "expand.conv."},    {"conv.0.1.", "expand.bn."},
                             {"conv.1.0.", "depthwise.conv."}, {"conv.1.1.", "depthwise.bn."},
                             {"conv.2.", "project.conv."},     {"conv.3.", "project.bn."}};

std::span<const Layer> LayersOf(int index) {
  if (index == 0 || index == kHeadIndex) return kOuter;
  if (index == 1) return kFirst;
  return kOthers;
}

// Removes a number and the dot behind it from the beginning of `rest`; nothing if there is none.
std::optional<int> TakeIndex(std::string_view& rest) {
  int index = 0;
  const char* const end = rest.data() + rest.size();
  const auto [after, error] = std::from_chars(rest.data(), end, index);
  if (error != std::errc() || after == end || *after != '.') return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(after - rest.data()) + 1);
  return index;
}

}  // namespace

std::string NameOfTorchvision(const std::string& name) {
  std::string_view rest = name;
  if (rest.starts_with(kClassifier.first))
    return std::string(kClassifier.second) + name.substr(kClassifier.first.size());
  if (!rest.starts_with(kFeatures)) return name;
  rest.remove_prefix(kFeatures.size());
  const std::optional<int> index = TakeIndex(rest);
  if (!index) return name;
  std::string known = *index == 0            ? "stem."
                      : *index == kHeadIndex ? "head."
                                             : std::string(kBlocks) + std::to_string(*index - 1) + ".";
  for (const auto& [theirs, ours] : LayersOf(*index)) {
    if (rest.starts_with(theirs)) return known + std::string(ours) + std::string(rest.substr(theirs.size()));
  }
  return known + std::string(rest);
}

std::string TorchvisionName(const std::string& name) {
  std::string_view rest = name;
  const auto take = [&rest](std::string_view beginning) {
    if (!rest.starts_with(beginning)) return false;
    rest.remove_prefix(beginning.size());
    return true;
  };
  if (take(kClassifier.second)) return std::string(kClassifier.first) + std::string(rest);
  std::optional<int> index;
  if (take("stem.")) {
    index = 0;
  } else if (take("head.")) {
    index = kHeadIndex;
  } else if (take(kBlocks)) {
    index = TakeIndex(rest);
    if (index) ++*index;
  }
  if (!index || *index > kHeadIndex) return name;
  for (const auto& [theirs, ours] : LayersOf(*index)) {
    if (take(ours))
      return std::string(kFeatures) + std::to_string(*index) + "." + std::string(theirs) + std::string(rest);
  }
  return name;
}

}  // namespace saccade::models
