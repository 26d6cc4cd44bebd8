#include "models/networks/recognise.h"

#include <algorithm>
#include <utility>

#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/api/text.h"
#include "models/networks/nearest.h"
#include "models/networks/nearest_text.h"
#include "models/weights/format/weights_format.h"

namespace saccade::models {
namespace {

[[noreturn]] void FailToRecognise(const NearestNetwork& nearest, const std::vector<TensorEntry>& entries) {
  constexpr size_t kMaxShown = 5;
  std::string names;
  size_t shown = 0;
  for (const TensorEntry& entry : entries) {
    if (shown == kMaxShown) break;
    if (IsBatchCounter(entry.name)) continue;
    names += (shown++ > 0 ? ", " : "") + Quote(entry.name) + " " + ShapeText(entry.shape);
  }
  std::string text = "no network has exactly its " + std::to_string(nearest.tensors) + " tensors (" + names +
                     (nearest.tensors > kMaxShown ? ", ...)" : ")");
  if (nearest.architecture.empty()) {
    throw LoadError(text +
                    ", and none is near; export it as a program or an ONNX file, or name the network " +
                    "with --architecture: " + Joined(Architectures(), ", "));
  }
  text += "; " + NearestText(nearest);
  for (const std::string& difference : DifferenceTexts(nearest.fit)) text += "; " + difference;
  throw LoadError(text);
}

Recognised MakeRecognised(const std::string& architecture, const Options& options,
                          const std::vector<TensorEntry>& entries) {
  Recognised found{.architecture = architecture, .options = options};
  found.classes = Describe(architecture, options).classes;
  if (const std::string prefix = WrappersPrefix(entries); !prefix.empty()) {
    found.notes.push_back("all " + std::to_string(entries.size()) + " names carry the prefix " +
                          Quote(prefix) + ", which the daemon passes over");
  }
  if (architecture == "maskrcnn_resnet50_fpn") {
    found.notes.emplace_back(
        "batch_norm_epsilon is 0, as torchvision's COCO weights want it; set it to 1e-5 for a network that "
        "was built with weights=None");
  }
  return found;
}

}  // namespace

Recognised Recognise(const std::vector<TensorEntry>& entries) {
  const NearestNetwork nearest = Nearest(entries);
  const bool exact = !nearest.architecture.empty() && nearest.prefix.empty() && nearest.fit.exact();
  if (!exact) FailToRecognise(nearest, entries);
  if (!nearest.alike.empty()) {
    std::vector<std::string> names = nearest.Names();
    std::sort(names.begin(), names.end());
    throw LoadError("its " + std::to_string(nearest.tensors) + " tensors are those of " +
                    Alternatives(names) + "; say which one it was trained as, with --architecture");
  }
  return MakeRecognised(nearest.architecture, nearest.options, entries);
}

Recognised RecogniseAs(const std::string& architecture, const std::vector<TensorEntry>& entries) {
  const NearestNetwork as_named = NearestAs(architecture, entries);
  Recognised found = MakeRecognised(architecture, as_named.options, entries);
  if (as_named.fit.exact() && as_named.prefix.empty()) return found;
  found.notes.push_back("its tensors do not fit " + Quote(architecture) +
                        ": the daemon loads it after its options, or the file, are changed");
  if (!as_named.prefix.empty()) {
    found.notes.push_back("its names carry the prefix " + Quote(as_named.prefix) +
                          ", which the network's have not");
  }
  for (std::string& difference : DifferenceTexts(as_named.fit)) found.notes.push_back(std::move(difference));
  return found;
}

}  // namespace saccade::models
