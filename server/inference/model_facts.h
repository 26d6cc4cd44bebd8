// Facts about a loaded model's outputs, which all calls of it need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalog/served_model.h"
#include "server/core/tensor_call.h"
#include "server/inference/cached_outputs.h"

namespace saccade::server {

// True if the tensors are those of the configuration: of a program or a graph, unless a description makes it
// a model of pictures.
bool IsProgram(const ModelSettings& settings);

// REQUIRES: `model` outlives the result.
std::vector<OutputFacts> FactsOfModel(const ServedModel& model);

// The labels of the indices of an output's last extent; none if the model has no such output. REQUIRES: the
// model is not an ensemble.
std::vector<std::string> LabelsOfOutput(const ServedModel& model, const std::string& output);

// As SelectOutputs() of the model's outputs.
std::optional<absl::StatusOr<std::vector<Tensor>>> CutFor(const ServedModel& model,
                                                          const std::vector<Tensor>& kept,
                                                          const std::vector<WantedOutput>& wanted);

}  // namespace saccade::server
