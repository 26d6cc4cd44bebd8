#include "server/inference/cached_outputs.h"

#include <algorithm>
#include <utility>

#include "server/core/classification.h"
#include "server/inference/task_outputs.h"

namespace saccade::server {
namespace {

template <typename Named>
const Named* Find(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::vector<OutputFacts> FactsOf(const ModelSettings& program) {
  std::vector<OutputFacts> facts;
  for (const TensorSpec& output : program.outputs)
    facts.push_back({.name = output.name, .labels = &output.labels});
  return facts;
}

std::vector<OutputFacts> FactsOf(const models::Description& network, ItemsForm form) {
  std::vector<OutputFacts> facts;
  const std::vector<std::string> unasked = UnaskedOutputs(network, form);
  for (TensorDescription& output : DescribeOutputs(network, form)) {
    const bool by_default = std::find(unasked.begin(), unasked.end(), output.name) != unasked.end();
    const std::vector<std::string>& labels = LabelsOfIndices(output.name, network, form);
    facts.push_back({.name = std::move(output.name), .unasked = by_default, .labels = &labels});
  }
  return facts;
}

std::vector<WantedOutput> OutputsToCache(const std::vector<WantedOutput>& wanted, bool is_program) {
  std::vector<WantedOutput> whole;
  if (is_program) return whole;
  for (const WantedOutput& output : wanted) {
    if (Find(whole, output.name) == nullptr) whole.push_back({.name = output.name});
  }
  return whole;
}

std::optional<absl::StatusOr<std::vector<Tensor>>> SelectOutputs(const std::vector<Tensor>& kept,
                                                                 const std::vector<WantedOutput>& wanted,
                                                                 const std::vector<OutputFacts>& facts,
                                                                 bool batched) {
  for (const WantedOutput& output : wanted) {
    if (Find(kept, output.name) == nullptr) return std::nullopt;
  }
  std::vector<Tensor> chosen;
  for (const OutputFacts& fact : facts) {
    const WantedOutput* const asked = Find(wanted, fact.name);
    if (wanted.empty() ? !fact.unasked : asked == nullptr) continue;
    const Tensor* const whole = Find(kept, fact.name);
    if (whole == nullptr) return std::nullopt;
    if (asked == nullptr || asked->classes == 0) {
      chosen.push_back(*whole);
      continue;
    }
    auto classified = Classify(*whole, asked->classes, *fact.labels, batched);
    if (!classified.ok()) return classified.status();
    chosen.push_back(*std::move(classified));
  }
  return chosen;
}

std::vector<Tensor> Union(const std::vector<Tensor>& older, const std::vector<Tensor>& newer,
                          const std::vector<OutputFacts>& facts) {
  std::vector<Tensor> all;
  for (const OutputFacts& fact : facts) {
    const Tensor* found = Find(newer, fact.name);
    if (found == nullptr) found = Find(older, fact.name);
    if (found != nullptr) all.push_back(*found);
  }
  return all;
}

}  // namespace saccade::server
