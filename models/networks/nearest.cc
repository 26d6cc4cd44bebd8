#include "models/networks/nearest.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "models/api/registry.h"
#include "models/api/text.h"
#include "models/weights/format/weights_format.h"

namespace saccade::models {
namespace {

// A prefix is tried if at least this share of the names carries it.
constexpr double kMinPrefixShare = 0.5;
// A network is named if at least this share of the file's names is in it.
constexpr double kMinMatchingShare = 1.0 / 3;

// The first `parts` parts of a name, with the dot behind them; empty if the name has no more parts than that.
std::string_view BeginningOf(std::string_view name, int parts) {
  size_t end = 0;
  for (; parts > 0; --parts) {
    const size_t dot = name.find('.', end);
    if (dot == std::string_view::npos) return {};
    end = dot + 1;
  }
  return name.substr(0, end);
}

// The most frequent beginning of so many parts; empty if it is rare.
std::string UsualBeginning(const std::vector<std::string>& names, int parts) {
  std::map<std::string_view, size_t> counts;
  for (const std::string& name : names) ++counts[BeginningOf(name, parts)];
  counts.erase(std::string_view());
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool usual = most != counts.end() &&
                     static_cast<double>(most->second) >= kMinPrefixShare * static_cast<double>(names.size());
  return usual ? std::string(most->first) : "";
}

// Layers are modules: a tensor's name is that of its module and one part more, or two in attention modules,
// whose parts are no layers of their own.
bool Belongs(std::string_view name, const std::set<std::string, std::less<>>& layers) {
  for (int parts = 0; parts < 2; ++parts) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    name = name.substr(0, dot);
    if (layers.contains(name)) return true;
  }
  return false;
}

std::set<std::string, std::less<>> LayersOf(const std::string& architecture, const Options& options) {
  std::set<std::string, std::less<>> layers;
  for (const LayerCount& layer : Count(architecture, options).layers) layers.insert(layer.name);
  return layers;
}

}  // namespace

NearestNetwork Nearest(const std::vector<TensorEntry>& entries, const std::string& preferred,
                       const Options& options) {
  const size_t wrappers = WrappersPrefix(entries).size();
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries) {
    if (!entry.name.ends_with(".num_batches_tracked")) names.push_back(entry.name.substr(wrappers));
  }
  const std::set<std::string> prefixes = {"", UsualBeginning(names, 1), UsualBeginning(names, 2)};
  NearestNetwork nearest{.architecture = {}, .tensors = names.size()};
  std::vector<std::string> architectures = Architectures();
  if (!preferred.empty()) architectures.insert(architectures.begin(), preferred);
  for (const std::string& architecture : architectures) {
    const auto layers = LayersOf(architecture, architecture == preferred ? options : Options());
    for (const std::string& prefix : prefixes) {
      const auto matching =
          static_cast<size_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
            return name.starts_with(prefix) && Belongs(std::string_view(name).substr(prefix.size()), layers);
          }));
      if (matching <= nearest.matching) continue;
      nearest.architecture = architecture;
      nearest.prefix = prefix;
      nearest.matching = matching;
    }
  }
  return nearest;
}

std::string NearestText(const NearestNetwork& nearest) {
  if (static_cast<double>(nearest.matching) < kMinMatchingShare * static_cast<double>(nearest.tensors) ||
      nearest.matching == 0)
    return "";
  std::string text = std::to_string(nearest.matching) + " of its " + std::to_string(nearest.tensors) +
                     " tensors have the names of " + Quote(nearest.architecture);
  if (!nearest.prefix.empty()) text += " behind the prefix " + Quote(nearest.prefix);
  text += "; did you mean that network?";
  if (nearest.prefix.empty())
    return text + " Then name it with --architecture, or as 'architecture' in config.pbtxt";
  return text + " Then save the weights without the prefix: {name.removeprefix(\"" + nearest.prefix +
         "\"): tensor for name, tensor in state_dict.items()}";
}

}  // namespace saccade::models
