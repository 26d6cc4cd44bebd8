#include "server/inference/crop_models.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/api/description.h"

namespace saccade::server {
namespace {

bool TakesOnePicture(const models::Description& model) {
  return model.input.medium == models::Medium::kPictures && model.input.views == 1;
}

bool SeesCrops(models::Task task) {
  return task == models::Task::kClassification || task == models::Task::kDetection ||
         task == models::Task::kEmbedding;
}

// The model, if it is ready and no ensemble itself.
absl::StatusOr<std::shared_ptr<ServedModel>> Find(const EnsembleStep& step, const Catalog& catalog) {
  auto found = catalog.FindReady(step.model, step.version);
  if (!found.ok() || (*found)->ensemble() == nullptr) return found;
  return absl::FailedPreconditionError(
      absl::StrCat("model '", step.model, "' is an ensemble, expected a model of pictures"));
}

absl::Status CheckDetector(const std::string& name, const models::Description& model,
                           const CropRules& rules) {
  if (model.task != models::Task::kDetection || !TakesOnePicture(model)) {
    return absl::FailedPreconditionError(absl::StrCat("the task of model '", name, "' is ",
                                                      models::TaskName(model.task),
                                                      ", expected detection, whose boxes are the crops"));
  }
  for (const int64_t index : rules.classes) {
    if (index < model.classes) continue;
    return absl::FailedPreconditionError(absl::StrCat("the parameter 'crop_classes' names class ", index,
                                                      ", expected 0 to ", model.classes - 1, ", those of '",
                                                      name, "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckSeesCrops(const std::string& name, const models::Description& model) {
  if (SeesCrops(model.task) && TakesOnePicture(model)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the task of model '", name, "', which sees the crops, is ", models::TaskName(model.task),
                   ", expected classification, detection or embedding"));
}

absl::StatusOr<CropModels> FindAll(const Ensemble& ensemble, CropRules rules, const Catalog& catalog) {
  CropModels models{.rules = std::move(rules), .detector = nullptr, .models = {}};
  for (const EnsembleStep& step : ensemble.settings.ensemble) {
    auto found = Find(step, catalog);
    if (!found.ok()) return found.status();
    const models::Description& description = (*found)->description();
    const bool detects = models.detector == nullptr;
    absl::Status fits = detects ? CheckDetector(step.model, description, models.rules)
                                : CheckSeesCrops(step.model, description);
    if (!fits.ok()) return fits;
    if (detects) {
      models.detector = *std::move(found);
    } else {
      models.models.push_back(*std::move(found));
    }
  }
  return models;
}

}  // namespace

absl::StatusOr<std::optional<CropModels>> FindCropModels(const Ensemble& ensemble, const Catalog& catalog) {
  auto rules = CropRulesOf(ensemble.settings);
  if (!rules.ok()) return rules.status();
  if (!*rules) return std::nullopt;
  auto models = FindAll(ensemble, **std::move(rules), catalog);
  if (models.ok()) return *std::move(models);
  return absl::UnavailableError(
      absl::StrCat("ensemble '", ensemble.settings.name, "' cannot be run: ", models.status().message()));
}

}  // namespace saccade::server
