#include "models/networks/fit.h"

#include <algorithm>
#include <map>
#include <set>

#include "models/networks/pair_tensors.h"

namespace saccade::models {
namespace {

constexpr double kWeightOfReshaped = 0.6;
constexpr double kWeightOfRenamed = 0.5;
constexpr double kWeightOfSimilar = 0.9;

// The network's name for each tensor of the file that it knows or does not know; not those it passes over.
std::map<std::string, const FileTensor*> ByKnownName(const std::vector<FileTensor>& file,
                                                     const WeightNames& names) {
  std::map<std::string, const FileTensor*> by_name;
  for (const FileTensor& tensor : file) {
    if (!names.IsUnused(tensor.name)) by_name.emplace(names.Known(tensor.name), &tensor);
  }
  return by_name;
}

}  // namespace

double WeightsFit::Score() const {
  const size_t all = named() + renamed.size() + missing.size() + surplus.size();
  if (all == 0) return 0;
  const auto similar = static_cast<double>(std::count_if(
      renamed.begin(), renamed.end(), [](const RenamedTensor& tensor) { return tensor.similar; }));
  return (static_cast<double>(equal) + kWeightOfReshaped * static_cast<double>(reshaped.size()) +
          kWeightOfSimilar * similar + kWeightOfRenamed * (static_cast<double>(renamed.size()) - similar)) /
         static_cast<double>(all);
}

double WeightsFit::MaxScore() const {
  const size_t pairs = named() + renamed.size() + std::min(missing.size(), surplus.size());
  const size_t all =
      pairs + std::max(missing.size(), surplus.size()) - std::min(missing.size(), surplus.size());
  return all == 0 ? 0 : static_cast<double>(pairs) / static_cast<double>(all);
}

WeightsFit FitTensors(const std::vector<FileTensor>& file, const NetworkTensors& network) {
  std::map<std::string, const FileTensor*> left = ByKnownName(file, network.names);
  std::set<std::string> present_modules = {""};
  for (const TensorSpec& spec : network.expected) {
    if (left.contains(spec.name)) present_modules.insert(spec.optional_module);
  }
  WeightsFit fit;
  std::vector<TensorSpec> missing, with_absent_modules;
  for (const TensorSpec& spec : network.expected) {
    const std::string written = network.names.Written(spec.name);
    const auto found = left.find(spec.name);
    if (found == left.end()) {
      with_absent_modules.push_back({written, spec.shape});
      if (present_modules.contains(spec.optional_module)) missing.push_back({written, spec.shape});
      continue;
    }
    const FileTensor& tensor = *found->second;
    if (tensor.name != written) ++fit.foreign;
    if (tensor.shape == spec.shape) {
      ++fit.equal;
    } else {
      fit.reshaped.push_back({written, spec.shape, tensor.shape});
    }
    left.erase(found);
  }
  std::vector<FileTensor> surplus;
  for (const FileTensor& tensor : file) {
    const auto found = left.find(network.names.Known(tensor.name));
    if (found != left.end() && found->second == &tensor) surplus.push_back(tensor);
  }
  WeightsFit without = fit;
  PairTensors(missing, surplus, without);
  if (without.surplus.empty() || with_absent_modules.size() == missing.size()) return without;
  // An optional module may be there under another name.
  PairTensors(with_absent_modules, surplus, fit);
  return fit.Score() > without.Score() ? fit : without;
}

}  // namespace saccade::models
