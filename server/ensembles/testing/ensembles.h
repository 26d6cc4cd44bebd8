// Makes ensembles for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/repository/model_settings.h"

namespace saccade::server {

using Names = std::map<std::string, std::string>;

inline TensorSpec Spec(std::string name, std::vector<int64_t> dims = {-1}, DataType type = DataType::kFp32) {
  return {.name = std::move(name), .type = type, .dims = std::move(dims)};
}

inline ModelSettings EnsembleOf(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs,
                                std::vector<EnsembleStep> steps) {
  ModelSettings settings;
  settings.name = std::string("e");
  settings.backend = Backend::kEnsemble;
  settings.has_batch_dimension = false;
  settings.batching.max_batch_size = 1;
  settings.inputs = std::move(inputs);
  settings.outputs = std::move(outputs);
  settings.ensemble = std::move(steps);
  return settings;
}

inline EnsembleStep Step(std::string model, Names inputs, Names outputs) {
  return {
      .model = std::move(model), .version = 0, .inputs = std::move(inputs), .outputs = std::move(outputs)};
}

}  // namespace saccade::server
