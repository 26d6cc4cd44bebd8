#include "models/networks/nearest.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/api/registry.h"
#include "models/networks/fit_options.h"
#include "models/networks/known_tensors.h"
#include "models/weights/format/weights_format.h"

namespace saccade::models {
namespace {

// A prefix is tried if at least this share of the names carries it.
constexpr double kMinPrefixShare = 0.5;
// A network is near from this score on: half of both sides' tensors have a counterpart by shape alone, or a
// third of them by name.
constexpr double kMinScore = 0.25;
// Networks whose scores differ by less are alike: the file may be damaged where they differ.
constexpr double kAlike = 0.01;
// No network here has so many tensors.
constexpr size_t kMaxTensors = 10'000;

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
std::string UsualBeginning(const std::vector<FileTensor>& file, int parts) {
  std::map<std::string_view, size_t> counts;
  for (const FileTensor& tensor : file) ++counts[BeginningOf(tensor.name, parts)];
  counts.erase(std::string_view());
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool usual = most != counts.end() &&
                     static_cast<double>(most->second) >= kMinPrefixShare * static_cast<double>(file.size());
  return usual ? std::string(most->first) : "";
}

std::vector<FileTensor> TensorsIn(const std::vector<TensorEntry>& entries) {
  const size_t wrappers = WrappersPrefix(entries).size();
  std::vector<FileTensor> tensors;
  for (const TensorEntry& entry : entries) {
    if (!IsBatchCounter(entry.name)) tensors.push_back({entry.name.substr(wrappers), entry.shape});
  }
  return tensors;
}

// The tensors without the prefix; those that do not carry it keep their names.
std::vector<FileTensor> Without(const std::string& prefix, std::vector<FileTensor> tensors) {
  for (FileTensor& tensor : tensors) {
    if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
  }
  return tensors;
}

// The file's tensors without each prefix that may be there, also without none.
using ByPrefix = std::map<std::string, std::vector<FileTensor>>;

ByPrefix WithAndWithoutPrefix(const std::vector<FileTensor>& file) {
  ByPrefix by_prefix;
  for (const std::string& prefix : {std::string(), UsualBeginning(file, 1), UsualBeginning(file, 2)})
    by_prefix.emplace(prefix, Without(prefix, file));
  return by_prefix;
}

// Architectures whose names differ in the number behind them alone (resnet50, resnet101) are the same network
// in another depth, which the option blocks sets too.
std::string_view WithoutDepth(std::string_view architecture) {
  return architecture.substr(0, architecture.find_last_not_of("0123456789") + 1);
}

struct Candidate {
  NearestNetwork network;
  double score = 0;
  bool preferred = false;

  // Whether this is the better answer, for the same file.
  bool Beats(const Candidate& other) const {
    const auto rank = [](const Candidate& candidate) {
      return std::tuple(candidate.score, -static_cast<double>(candidate.network.fit.foreign),
                        candidate.preferred, -static_cast<double>(candidate.network.options.size()),
                        // The shallower of two that differ in depth: resnet50 rather than resnet101.
                        -static_cast<double>(candidate.network.architecture.size()));
    };
    return rank(*this) > rank(other);
  }

  bool IsAlike(const Candidate& best) const {
    if (network.options.contains("blocks") &&
        WithoutDepth(network.architecture) == WithoutDepth(best.network.architecture))
      return false;
    if (network.fit.foreign > best.network.fit.foreign) return false;
    if (best.network.fit.exact()) return network.fit.exact();
    return best.score - score < kAlike;
  }
};

// The best fit of one architecture by names, with any prefix.
Candidate CandidateOf(const std::string& architecture, const Options& options, bool preferred,
                      const ByPrefix& by_prefix, KnownTensors& tensors) {
  Candidate best;
  for (const auto& [prefix, file] : by_prefix) {
    FittedOptions fitted = FitBlocks(architecture, options, file, tensors);
    Candidate candidate;
    candidate.score = fitted.fit.Score();
    candidate.preferred = preferred;
    candidate.network = {.architecture = architecture,
                         .options = std::move(fitted.options),
                         .prefix = prefix,
                         .fit = std::move(fitted.fit),
                         .tensors = file.size()};
    if (best.network.architecture.empty() || candidate.Beats(best)) best = std::move(candidate);
  }
  return best;
}

// Finds the options that change shapes.
void FitShapesOf(Candidate& candidate, const ByPrefix& by_prefix, KnownTensors& tensors) {
  NearestNetwork& network = candidate.network;
  FittedOptions fitted =
      FitShapes(network.architecture, {network.options, network.fit}, by_prefix.at(network.prefix), tensors);
  network.options = std::move(fitted.options);
  network.fit = std::move(fitted.fit);
  candidate.score = network.fit.Score();
}

}  // namespace

NearestNetwork Nearest(const std::vector<TensorEntry>& entries, const std::string& preferred,
                       const Options& options) {
  const std::vector<FileTensor> file = TensorsIn(entries);
  NearestNetwork none{.tensors = file.size()};
  if (file.size() > kMaxTensors) return none;
  const ByPrefix by_prefix = WithAndWithoutPrefix(file);
  KnownTensors tensors;
  std::vector<Candidate> candidates;
  if (!preferred.empty()) candidates.push_back(CandidateOf(preferred, options, true, by_prefix, tensors));
  for (const std::string& architecture : Architectures()) {
    if (architecture != preferred)
      candidates.push_back(CandidateOf(architecture, {}, false, by_prefix, tensors));
  }
  // Fitting shapes takes the longest, so networks that cannot come near the best one are left out.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.Beats(b); });
  double best_score = candidates.front().score;
  for (Candidate& candidate : candidates) {
    if (candidate.network.fit.MaxScore() + kAlike < best_score) continue;
    FitShapesOf(candidate, by_prefix, tensors);
    best_score = std::max(best_score, candidate.score);
  }
  const Candidate& best =
      *std::max_element(candidates.begin(), candidates.end(),
                        [](const Candidate& a, const Candidate& b) { return b.Beats(a); });
  if (best.score < kMinScore) return none;
  NearestNetwork nearest = best.network;
  for (const Candidate& candidate : candidates) {
    if (&candidate != &best && candidate.IsAlike(best))
      nearest.alike.push_back(candidate.network.architecture);
  }
  std::sort(nearest.alike.begin(), nearest.alike.end());
  return nearest;
}

NearestNetwork NearestAs(const std::string& architecture, const std::vector<TensorEntry>& entries,
                         const Options& options) {
  const ByPrefix by_prefix = WithAndWithoutPrefix(TensorsIn(entries));
  KnownTensors tensors;
  Candidate candidate = CandidateOf(architecture, options, false, by_prefix, tensors);
  FitShapesOf(candidate, by_prefix, tensors);
  return std::move(candidate.network);
}

}  // namespace saccade::models
