#include "server/repository/ensemble_config.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/repository/repository.h"
#include "server/repository/tensor_config.h"

namespace saccade::server {
namespace {

constexpr int kMaxSteps = 64;

struct PlacedStep {
  EnsembleStep step;
  std::string field;
};

absl::Status ReadMap(const google::protobuf::Map<std::string, std::string>& message, const std::string& field,
                     const ConfigCheck& check, std::map<std::string, std::string>* map) {
  if (message.empty())
    return check.Error(field, "is missing; expected an entry for each of the step's tensors");
  map->insert(message.begin(), message.end());
  for (const auto& [own, ensembles] : *map) {
    const std::string entry = MapEntryPath(field, own);
    absl::Status status = CheckTensorName(own, entry, check);
    if (status.ok()) status = CheckTensorName(ensembles, entry, check);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadStep(const inference::ModelEnsembling::Step& message, const ConfigCheck& check,
                      PlacedStep* placed) {
  const std::string& field = placed->field;
  EnsembleStep& step = placed->step;
  if (absl::Status name = CheckModelName(message.model_name()); !name.ok())
    return check.Error(field + ".model_name", name.message());
  step.model = message.model_name();
  // As in Triton, -1 means the latest version; so does a missing version.
  if (message.model_version() < -1) {
    return check.Error(field + ".model_version", "is ", message.model_version(),
                       ", expected a version, or -1 for the latest");
  }
  step.version = std::max<int64_t>(0, message.model_version());
  absl::Status status = ReadMap(message.input_map(), field + ".input_map", check, &step.inputs);
  if (status.ok()) status = ReadMap(message.output_map(), field + ".output_map", check, &step.outputs);
  return status;
}

// Collects the tensors that steps make. Each must be made by one step only, and must not be an input of the
// ensemble.
absl::Status CheckMadeOnce(const std::vector<PlacedStep>& steps, const ModelSettings& settings,
                           const ConfigCheck& check, std::set<std::string>* made) {
  std::set<std::string> given;
  for (const TensorSpec& input : settings.inputs) given.insert(input.name);
  for (const PlacedStep& placed : steps) {
    for (const auto& [own, ensembles] : placed.step.outputs) {
      if (given.count(ensembles) == 0 && made->insert(ensembles).second) continue;
      return check.Error(
          MapEntryPath(placed.field + ".output_map", own), "makes '", ensembles, "', which ",
          given.count(ensembles) > 0 ? "is an input of the ensemble" : "another step makes as well");
    }
  }
  return absl::OkStatus();
}

// Orders the steps such that the inputs of each are available.
absl::Status Order(std::vector<PlacedStep> steps, const ConfigCheck& check, ModelSettings* settings,
                   const std::set<std::string>& made) {
  std::set<std::string> there;
  for (const TensorSpec& input : settings->inputs) there.insert(input.name);
  while (!steps.empty()) {
    std::string missing;
    std::string missing_at;
    const auto is_ready = [&](const PlacedStep& placed) {
      for (const auto& [own, ensembles] : placed.step.inputs) {
        if (there.count(ensembles) > 0) continue;
        if (missing.empty() || made.count(ensembles) == 0) {
          missing = ensembles;
          missing_at = MapEntryPath(placed.field + ".input_map", own);
        }
        return false;
      }
      return true;
    };
    const auto next = std::find_if(steps.begin(), steps.end(), is_ready);
    if (next == steps.end()) {
      return check.Error(missing_at, "needs '", missing, "', which ",
                         made.count(missing) > 0 ? "depends on this step: the steps form a cycle"
                                                 : "is neither an input of the ensemble nor made by a step");
    }
    for (const auto& [own, ensembles] : next->step.outputs) there.insert(ensembles);
    settings->ensemble.push_back(std::move(next->step));
    steps.erase(next);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadEnsemble(const inference::ModelEnsembling& ensemble, const ConfigCheck& check,
                          ModelSettings* settings) {
  constexpr char kStep[] = "ensemble_scheduling.step";
  if (ensemble.step_size() < 1 || ensemble.step_size() > kMaxSteps) {
    return check.Error(kStep, "is given ", ensemble.step_size(), " times, expected 1 to ", kMaxSteps);
  }
  std::vector<PlacedStep> steps;
  for (int i = 0; i < ensemble.step_size(); ++i) {
    PlacedStep placed{{}, absl::StrCat(kStep, "[", i, "]")};
    if (absl::Status status = ReadStep(ensemble.step(i), check, &placed); !status.ok()) return status;
    if (placed.step.model == settings->name)
      return check.Error(placed.field + ".model_name", "is the ensemble itself");
    steps.push_back(std::move(placed));
  }
  std::set<std::string> made;
  if (absl::Status status = CheckMadeOnce(steps, *settings, check, &made); !status.ok()) return status;
  for (size_t i = 0; i < settings->outputs.size(); ++i) {
    if (made.count(settings->outputs[i].name) > 0) continue;
    return check.Error(absl::StrCat("output[", i, "].name"), "is '", settings->outputs[i].name,
                       "', which no step makes; name it in an output_map");
  }
  return Order(std::move(steps), check, settings, made);
}

}  // namespace saccade::server
