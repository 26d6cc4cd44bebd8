// Detects models whose files have changed and are no longer being written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/settled_change.h"
#include "server/repository/stamps.h"

namespace saccade::server {

// Compares successive states of a repository, each model by the rule of SettledChange. Not thread-safe.
class Settling {
 public:
  using Stamps = std::map<std::string, ModelStamp>;

  // Records the state that was loaded, or whose loading was tried.
  void Applied(const std::string& model, const ModelStamp& stamp);

  // Returns the models to be reloaded, sorted: those that were changed, added or removed (not in `seen`)
  // compared with their applied state, and are unchanged since the last call. A model is returned until it is
  // applied or forgotten.
  std::vector<std::string> Look(const Stamps& seen);

  // Forgets a removed model.
  void Forget(const std::string& model) { models_.erase(model); }

  // True if no model was applied.
  bool empty() const;

 private:
  // Each state is nullopt if the model is not there.
  std::map<std::string, SettledChange<std::optional<ModelStamp>>> models_;
};

}  // namespace saccade::server
