// An ensemble as a graph: which step makes which tensor, and who needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct EnsemblePlan {
  // A model's own name for one of the ensemble's tensors.
  struct Port {
    std::string name;
    size_t tensor = 0;
  };
  struct Step {
    std::string model;
    // 0 is the highest that is ready.
    int64_t version = 0;
    std::vector<Port> inputs;
    std::vector<Port> outputs;
  };
  struct NamedTensor {
    std::string name;
    // None: the request brings it.
    std::optional<size_t> maker = std::nullopt;
    // Steps, once for each of their inputs that it feeds.
    std::vector<size_t> takers = {};
  };

  std::vector<NamedTensor> tensors;
  // Each after those that make its inputs.
  std::vector<Step> steps;
  // In the order of the settings; each is a tensor.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};

// REQUIRES: settings of an ensemble as the repository gives them.
EnsemblePlan MakePlan(const ModelSettings& settings);

// A version of an ensemble. It computes nothing itself.
struct Ensemble {
  Ensemble(ModelSettings of, int64_t number)
      : settings(std::move(of)), version(number), plan(MakePlan(settings)) {}

  const ModelSettings settings;
  const int64_t version;
  const EnsemblePlan plan;
};

// Whoever runs ensembles says whether one can be run: UNAVAILABLE with the reason, or OK. Thread-safe, but
// for `check`, which is set before anything is loaded.
struct EnsembleRunner {
  std::function<absl::Status(const Ensemble&)> check = nullptr;
};

// How errors name a step: "step of model 'm' that makes 'x'". Each tensor is made by one step.
std::string NameOf(const EnsemblePlan& plan, size_t step);

}  // namespace saccade::server
