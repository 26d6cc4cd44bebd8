#include "server/inference/model_facts.h"

namespace saccade::server {

bool IsProgram(const ModelSettings& settings) {
  return RunsFile(settings.backend) && settings.pictures == nullptr;
}

std::vector<OutputFacts> FactsOfModel(const ServedModel& model) {
  const ModelSettings& settings = model.settings();
  return IsProgram(settings) ? FactsOf(settings) : FactsOf(model.description(), settings.items);
}

std::vector<std::string> LabelsOfOutput(const ServedModel& model, const std::string& output) {
  for (const OutputFacts& fact : FactsOfModel(model)) {
    if (fact.name == output) return *fact.labels;
  }
  return {};
}

std::optional<absl::StatusOr<std::vector<Tensor>>> CutFor(const ServedModel& model,
                                                          const std::vector<Tensor>& kept,
                                                          const std::vector<WantedOutput>& wanted) {
  return SelectOutputs(kept, wanted, FactsOfModel(model), model.settings().has_batch_dimension);
}

}  // namespace saccade::server
