#include "models/networks/nearest_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/api/text.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {
namespace {

// Maximum number of tensors that a sentence names, and of changed beginnings of names that are listed.
constexpr size_t kMaxNamed = 3;
constexpr size_t kMaxChanges = 6;
// From this share on, other shapes are those of another network, and no mistake.
constexpr double kMaxReshapedShare = 0.1;

// A beginning of names that was changed for another one, with the tensors that carry it.
struct Change {
  std::string expected;
  std::string found;
  std::vector<const RenamedTensor*> tensors;
};

// The beginnings that are left of two names without the ending that they share, dot by dot.
std::pair<std::string, std::string> Beginnings(std::string_view expected, std::string_view found) {
  std::pair<std::string, std::string> beginnings;
  for (size_t common = 1; common < std::min(expected.size(), found.size()); ++common) {
    const size_t a = expected.size() - common, b = found.size() - common;
    if (expected.substr(a) != found.substr(b)) break;
    if (expected[a] != '.') continue;
    beginnings = {std::string(expected.substr(0, a + 1)), std::string(found.substr(0, b + 1))};
  }
  return beginnings;
}

std::vector<Change> ChangesOf(const WeightsFit& fit) {
  std::vector<Change> changes;
  for (const RenamedTensor& tensor : fit.renamed) {
    auto [expected, found] = Beginnings(tensor.expected, tensor.found);
    const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& change) {
      return !expected.empty() && change.expected == expected && change.found == found;
    });
    if (same != changes.end()) {
      same->tensors.push_back(&tensor);
    } else {
      changes.push_back({std::move(expected), std::move(found), {&tensor}});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.tensors.size() > b.tensors.size(); });
  return changes;
}

std::string More(size_t all, const std::string& what) {
  return all > kMaxNamed ? " and " + std::to_string(all - kMaxNamed) + " more" + what : "";
}

// "'a' [2], 'b' [3] and 5 more".
template <typename Tensor>
std::string Listed(const std::vector<Tensor>& tensors) {
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kMaxNamed); ++i)
    text += (i > 0 ? ", " : "") + Quote(tensors[i].name) + " " + ShapeText(tensors[i].shape);
  return text + More(tensors.size(), "");
}

std::string IsOrAre(size_t count) { return count == 1 ? " is " : " are "; }

}  // namespace

std::string Alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + Quote(names[i]);
  return text;
}

std::vector<std::string> RenamedTexts(const WeightsFit& fit) {
  std::vector<std::string> texts;
  const std::vector<Change> changes = ChangesOf(fit);
  for (size_t i = 0; i < std::min(changes.size(), kMaxChanges); ++i) {
    const Change& change = changes[i];
    const RenamedTensor& first = *change.tensors.front();
    std::string text = Quote(first.expected) + " is missing; " + Quote(first.found) + " has its shape " +
                       ShapeText(first.shape) + ": rename ";
    if (change.tensors.size() == 1) {
      text += "it?";
    } else {
      text += Quote(change.found) + " to " + Quote(change.expected) + " in " +
              std::to_string(change.tensors.size()) + " names?";
    }
    texts.push_back(std::move(text));
  }
  if (changes.size() > kMaxChanges) {
    size_t tensors = 0;
    for (size_t i = kMaxChanges; i < changes.size(); ++i) tensors += changes[i].tensors.size();
    texts.push_back("so do " + std::to_string(tensors) + " more tensors of other names");
  }
  return texts;
}

std::vector<std::string> DifferenceTexts(const WeightsFit& fit) {
  std::vector<std::string> texts = RenamedTexts(fit);
  if (!fit.missing.empty()) texts.push_back(Listed(fit.missing) + IsOrAre(fit.missing.size()) + "missing");
  if (!fit.reshaped.empty()) {
    std::string text;
    for (size_t i = 0; i < std::min(fit.reshaped.size(), kMaxNamed); ++i) {
      const ReshapedTensor& tensor = fit.reshaped[i];
      text += (i > 0 ? ", " : "") + Quote(tensor.name) + " is " + ShapeText(tensor.got) + " instead of " +
              ShapeText(tensor.expected);
    }
    texts.push_back(text + More(fit.reshaped.size(), " have another shape"));
  }
  if (!fit.surplus.empty()) {
    texts.push_back(Listed(fit.surplus) + IsOrAre(fit.surplus.size()) + "surplus: remove " +
                    (fit.surplus.size() == 1 ? "it" : "them"));
  }
  return texts;
}

std::string NearestText(const NearestNetwork& nearest) {
  if (nearest.architecture.empty()) return "";
  const WeightsFit& fit = nearest.fit;
  const bool named = fit.named() > fit.renamed.size();
  const std::vector<std::string> names = nearest.Names();
  std::string text = std::to_string(named ? fit.named() : fit.renamed.size()) + " of its " +
                     std::to_string(nearest.tensors) + " tensors have the " + (named ? "names" : "shapes") +
                     " of " + Alternatives(names);
  std::string options;
  for (const auto& [name, value] : nearest.options)
    options += (options.empty() ? " with " : ", ") + name + "=" + value;
  text += options;
  if (!nearest.prefix.empty()) text += " behind the prefix " + Quote(nearest.prefix);
  text += names.size() == 1 ? "; did you mean that network?" : "; did you mean one of these networks?";
  if (static_cast<double>(fit.reshaped.size()) > kMaxReshapedShare * static_cast<double>(nearest.tensors)) {
    return text + " But " + std::to_string(fit.reshaped.size()) +
           " of them have another shape, as in a wider or grouped variant, which is not built in: bring it "
           "as "
           "a program or an ONNX file";
  }
  if (!nearest.prefix.empty()) {
    return text + " Then save the weights without the prefix: {name.removeprefix(\"" + nearest.prefix +
           "\"): tensor for name, tensor in state_dict.items()}";
  }
  if (fit.exact()) return text + " Then name it with --architecture, or as 'architecture' in config.pbtxt";
  return text + " Then save the weights with exactly its tensors";
}

}  // namespace saccade::models
