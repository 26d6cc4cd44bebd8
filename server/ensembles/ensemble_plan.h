// An ensemble as a graph: which step makes each tensor, and which steps use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/repository/model_settings.h"

namespace saccade::server {

struct EnsemblePlan {
  // An input or output of a step: the model's own name, and the index of the ensemble's tensor.
  struct Port {
    std::string name;
    size_t tensor = 0;
  };
  struct Step {
    std::string model;
    // 0 means the highest version that is ready.
    int64_t version = 0;
    std::vector<Port> inputs;
    std::vector<Port> outputs;
  };
  struct NamedTensor {
    std::string name;
    // The step that makes the tensor; nullopt for an input of the request.
    std::optional<size_t> maker = std::nullopt;
    // The steps that use the tensor, once for each of their inputs.
    std::vector<size_t> takers = {};
  };

  std::vector<NamedTensor> tensors;
  // Each step follows the steps that make its inputs.
  std::vector<Step> steps;
  // Indices into `tensors`, in the order of the settings.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};

// REQUIRES: the settings of an ensemble, as validated by the repository.
EnsemblePlan MakePlan(const ModelSettings& settings);

// One version of an ensemble. It computes nothing itself.
struct Ensemble {
  Ensemble(ModelSettings of, int64_t number)
      : settings(std::move(of)), version(number), plan(MakePlan(settings)) {}

  const ModelSettings settings;
  const int64_t version;
  const EnsemblePlan plan;
};

// How errors name a step: "step of model 'm' that makes 'x'". Each tensor is made by one step, so this is
// unique.
std::string NameOf(const EnsemblePlan& plan, size_t step);

}  // namespace saccade::server
