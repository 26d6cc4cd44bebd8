// Whether an ensemble's steps are there and their tensors fit each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/inference/model_interface.h"
#include "server/pipeline/ensemble_plan.h"

namespace saccade::server {

// What a step asks for.
struct StepModel {
  ModelInterface interface;
  // If it is an ensemble itself, whose steps are looked at as well.
  std::shared_ptr<const Ensemble> ensemble = nullptr;
};

// NOT_FOUND or UNAVAILABLE if it is not there or not ready.
using FindStep = std::function<absl::StatusOr<StepModel>(const std::string& model, int64_t version)>;

// OK, or why it cannot be run: a model that is not ready, a tensor of the wrong name, type or shape, a batch
// that is too large for a step, ensembles that go in a circle. An extent of -1 on either side fits any.
absl::Status CheckEnsemble(const Ensemble& ensemble, const FindStep& find);

// The ensemble's own, as it declares them; with their batch dimension.
ModelInterface InterfaceOf(const Ensemble& ensemble);

}  // namespace saccade::server
