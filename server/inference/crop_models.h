// The models of an ensemble with crops: one that detects, and those that see the parts around its detections.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/ensembles/ensemble_plan.h"
#include "server/repository/crop_rules.h"

namespace saccade::server {

struct CropModels {
  CropRules rules;
  std::shared_ptr<ServedModel> detector;
  // In the order of rules.models.
  std::vector<std::shared_ptr<ServedModel>> models;
};

// Finds the models; nullopt for an ensemble without crops. UNAVAILABLE, with the ensemble's name and the
// reason, if one of them is not ready or has a task that does not fit.
absl::StatusOr<std::optional<CropModels>> FindCropModels(const Ensemble& ensemble, const Catalog& catalog);

}  // namespace saccade::server
