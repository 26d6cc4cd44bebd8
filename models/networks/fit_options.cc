#include "models/networks/fit_options.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/networks/option_reader.h"

namespace saccade::models {
namespace {

// Two numbers of classes whose difference shows where, and how often, a shape contains them.
constexpr int64_t kFewer = 7;
constexpr int64_t kMore = 11;
constexpr int64_t kMaxClasses = 100'000;
// Votes for a number of classes by a tensor that has the name, rather than the likeness, of a classifier's.
constexpr int kVotesOfName = 100;
constexpr size_t kMaxGuesses = 4;
// Stages of a ResNet.
constexpr size_t kStages = 4;
constexpr int64_t kMaxBlocks = 1000;
// Widths that networks are commonly trained with.
constexpr std::array<const char*, 11> kWidths = {"0.1", "0.125", "0.25", "0.35", "0.5", "0.75",
                                                 "1",   "1.25",  "1.4",  "1.5",  "2"};
// A width is looked for if at least this share of the tensors has the network's names.
constexpr double kMinNamedShare = 0.5;

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// The number of classes with which a tensor that has the shapes `fewer` and `more` with kFewer and kMore has
// the shape `got`; nothing if there is none.
std::optional<int64_t> ClassesOf(const std::vector<int64_t>& fewer, const std::vector<int64_t>& more,
                                 const std::vector<int64_t>& got) {
  if (fewer.size() != more.size() || fewer.size() != got.size()) return std::nullopt;
  std::optional<int64_t> classes;
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t slope = (more[i] - fewer[i]) / (kMore - kFewer);
    if (slope == 0) {
      if (got[i] != fewer[i]) return std::nullopt;
      continue;
    }
    const int64_t rest = got[i] - (fewer[i] - slope * kFewer);
    if (rest <= 0 || rest % slope != 0 || rest / slope > kMaxClasses) return std::nullopt;
    classes = rest / slope;
  }
  return classes;
}

// The numbers of classes that tensors speak for, the likeliest first. Matrices that the network does not know
// count too, if their other extents and the last part of their names are the same.
std::vector<int64_t> ClassesIn(const std::string& architecture, Options options,
                               const std::vector<FileTensor>& file, KnownTensors& tensors) {
  options["classes"] = std::to_string(kFewer);
  const NetworkTensors& fewer = tensors.Of(architecture, options);
  options["classes"] = std::to_string(kMore);
  const NetworkTensors& more = tensors.Of(architecture, options);
  if (fewer.expected.size() != more.expected.size()) return {};
  std::set<std::string> known;
  for (const TensorSpec& spec : fewer.expected) known.insert(spec.name);
  std::map<int64_t, int> votes;
  for (size_t i = 0; i < fewer.expected.size(); ++i) {
    const TensorSpec& spec = fewer.expected[i];
    if (spec.shape == more.expected[i].shape) continue;
    for (const FileTensor& tensor : file) {
      const std::string name = fewer.names.Known(tensor.name);
      const bool other =
          spec.shape.size() >= 2 && !known.contains(name) && LastPart(tensor.name) == LastPart(spec.name);
      if (name != spec.name && !other) continue;
      if (const auto classes = ClassesOf(spec.shape, more.expected[i].shape, tensor.shape))
        votes[*classes] += name == spec.name ? kVotesOfName : 1;
    }
  }
  std::vector<int64_t> likeliest;
  for (const auto& [classes, count] : votes) likeliest.push_back(classes);
  std::stable_sort(likeliest.begin(), likeliest.end(),
                   [&](int64_t a, int64_t b) { return votes[a] > votes[b]; });
  likeliest.resize(std::min(likeliest.size(), kMaxGuesses));
  return likeliest;
}

// "3,4,6,3" if the names have blocks "layer1.0." to "layer4.2."; nothing if a stage has none.
std::optional<std::string> BlocksIn(const std::vector<FileTensor>& file) {
  std::array<int64_t, kStages> blocks{};
  constexpr std::string_view kLayer = "layer";
  for (const FileTensor& tensor : file) {
    const std::string_view name = tensor.name;
    const size_t at = name.find(kLayer);
    if (at == std::string_view::npos || at + kLayer.size() + 2 >= name.size()) continue;
    const int stage = name[at + kLayer.size()] - '1';
    if (stage < 0 || stage >= static_cast<int>(kStages) || name[at + kLayer.size() + 1] != '.') continue;
    int64_t index = 0;
    size_t digit = at + kLayer.size() + 2;
    const size_t first = digit;
    for (; digit < name.size() && name[digit] >= '0' && name[digit] <= '9' && index < kMaxBlocks; ++digit)
      index = index * 10 + (name[digit] - '0');
    if (digit == first) continue;
    int64_t& count = blocks[static_cast<size_t>(stage)];
    count = std::max(count, index + 1);
  }
  if (std::find(blocks.begin(), blocks.end(), 0) != blocks.end()) return std::nullopt;
  return ListText(blocks);
}

// Tries values of options, and keeps those that fit better.
class Fitting {
 public:
  Fitting(const std::string& architecture, FittedOptions fitted, const std::vector<FileTensor>& file,
          KnownTensors& tensors)
      : architecture_(architecture), file_(file), tensors_(tensors), found_(std::move(fitted)) {}

  const FittedOptions& found() const { return found_; }
  // Called last.
  FittedOptions Take() { return std::move(found_); }

  void Try(const std::string& option, const std::string& value) {
    Options options = found_.options;
    options[option] = value;
    try {
      WeightsFit fit = FitTensors(file_, tensors_.Of(architecture_, options));
      if (fit.Score() > found_.fit.Score()) found_ = {std::move(options), std::move(fit)};
    } catch (const LoadError&) {
      // The network cannot have this value, so the file is not of such a network.
    }
  }

 private:
  const std::string& architecture_;
  const std::vector<FileTensor>& file_;
  KnownTensors& tensors_;
  FittedOptions found_;
};

}  // namespace

FittedOptions FitBlocks(const std::string& architecture, const Options& options,
                        const std::vector<FileTensor>& file, KnownTensors& tensors) {
  Fitting fitting(architecture, {options, FitTensors(file, tensors.Of(architecture, options))}, file,
                  tensors);
  const std::optional<std::string> blocks = BlocksIn(file);
  if (!blocks || fitting.found().fit.exact()) return fitting.Take();
  const Options known = Describe(architecture, options).options;
  if (const auto now = known.find("blocks"); now != known.end() && now->second != *blocks)
    fitting.Try("blocks", *blocks);
  return fitting.Take();
}

FittedOptions FitShapes(const std::string& architecture, const FittedOptions& fitted,
                        const std::vector<FileTensor>& file, KnownTensors& tensors) {
  if (fitted.fit.exact()) return fitted;
  Fitting fitting(architecture, fitted, file, tensors);
  const Options known = Describe(architecture, fitted.options).options;
  const auto try_classes = [&] {
    if (!known.contains("classes")) return;
    for (const int64_t classes : ClassesIn(architecture, fitting.found().options, file, tensors))
      fitting.Try("classes", std::to_string(classes));
  };
  try_classes();
  const WeightsFit& fit = fitting.found().fit;
  const bool named = static_cast<double>(fit.named()) >= kMinNamedShare * static_cast<double>(file.size());
  if (!known.contains("width") || !named || fit.reshaped.empty()) return fitting.Take();
  const FittedOptions of_full_width = fitting.found();
  for (const char* width : kWidths) fitting.Try("width", width);
  try_classes();
  // A width that leaves other shapes is not the file's: it may be of a network with more groups.
  return fitting.found().fit.reshaped.empty() ? fitting.Take() : of_full_width;
}

}  // namespace saccade::models
