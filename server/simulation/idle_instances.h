// The idle instances of every model.
#pragma once

#include <vector>

#include "server/simulation/sim_devices.h"

namespace saccade::server::simulation {

class IdleInstances {
 public:
  explicit IdleInstances(const std::vector<ModelOptions>& models) {
    for (const ModelOptions& model : models) {
      idle_.emplace_back();
      for (int i = model.instances; i-- > 0;) idle_.back().push_back(i);
    }
  }

  bool any(int model) const { return !idle_[model].empty(); }

  // REQUIRES: any(model).
  int Take(int model) {
    const int instance = idle_[model].back();
    idle_[model].pop_back();
    return instance;
  }

  void Return(int model, int instance) { idle_[model].push_back(instance); }

 private:
  std::vector<std::vector<int>> idle_;
};

}  // namespace saccade::server::simulation
