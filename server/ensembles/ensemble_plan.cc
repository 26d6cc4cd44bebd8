#include "server/ensembles/ensemble_plan.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace saccade::server {

EnsemblePlan MakePlan(const ModelSettings& settings) {
  EnsemblePlan plan;
  std::map<std::string, size_t> numbers;
  const auto number_of = [&](const std::string& name) {
    const auto [found, is_new] = numbers.emplace(name, plan.tensors.size());
    if (is_new) plan.tensors.push_back({.name = name});
    return found->second;
  };
  for (const TensorSpec& input : settings.inputs) plan.inputs.push_back(number_of(input.name));
  for (const EnsembleStep& described : settings.ensemble) {
    // A model of crops, which has no tensors of the ensemble's.
    if (described.outputs.empty()) continue;
    EnsemblePlan::Step step{
        .model = described.model, .version = described.version, .inputs = {}, .outputs = {}};
    for (const auto& [own, ensembles] : described.inputs) {
      step.inputs.push_back({own, number_of(ensembles)});
      plan.tensors[step.inputs.back().tensor].takers.push_back(plan.steps.size());
    }
    for (const auto& [own, ensembles] : described.outputs) {
      step.outputs.push_back({own, number_of(ensembles)});
      plan.tensors[step.outputs.back().tensor].maker = plan.steps.size();
    }
    plan.steps.push_back(std::move(step));
  }
  for (const TensorSpec& output : settings.outputs) plan.outputs.push_back(number_of(output.name));
  return plan;
}

std::string NameOf(const EnsemblePlan& plan, size_t step) {
  const EnsemblePlan::Step& one = plan.steps[step];
  return absl::StrCat("step of model '", one.model, "' that makes '",
                      plan.tensors[one.outputs.front().tensor].name, "'");
}

}  // namespace saccade::server
