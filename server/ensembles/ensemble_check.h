// Checks that an ensemble's steps exist and that their tensors match.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/model_interface.h"
#include "server/core/tensor_call.h"
#include "server/ensembles/ensemble_plan.h"

namespace saccade::server {

// The model of a step.
struct StepModel {
  ModelInterface interface;
  // Returns the labels of the indices of an output's last extent. REQUIRES: the model is not an ensemble.
  // Null only in tests.
  std::function<std::vector<std::string>(const std::string& output)> labels_of = nullptr;
  // Set if the model is an ensemble itself; its steps are then checked too.
  std::shared_ptr<const Ensemble> ensemble = nullptr;
};

// NOT_FOUND or UNAVAILABLE if the model does not exist or is not ready.
using FindStep = std::function<absl::StatusOr<StepModel>(const std::string& model, int64_t version)>;

// Returns OK, or why the ensemble cannot be run: a model that is not ready, a tensor of the wrong name, type
// or shape, a max_batch_size that is too large for a step, or a cycle of ensembles. An extent of -1 on either
// side matches any extent. A step with a batch dimension in an ensemble without one computes a batch of one.
absl::Status CheckEnsemble(const Ensemble& ensemble, const FindStep& find);

// Inserts a batch of one into the tensors of an ensemble without a batch dimension that need it to fit
// `model`, which has one. REQUIRES: CheckEnsemble() accepted the ensemble.
void AddBatchOfOne(const ModelInterface& model, TensorCall& call);

// The same as an error for clients: UNAVAILABLE, with the ensemble's name and the reason.
absl::Status CheckRunnable(const Ensemble& ensemble, const FindStep& find);

// The ensemble's own interface as its configuration declares it, with the batch dimension.
ModelInterface InterfaceOf(const Ensemble& ensemble);

}  // namespace saccade::server
