// Detects models whose files have changed and are no longer being written.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/repository/stamps.h"

namespace saccade::server {

// Compares successive states of a repository. A change counts once two successive calls of Look() have seen
// the same state, because files that are being written differ each time. Uses no clock. Not thread-safe.
class Settling {
 public:
  using Stamps = std::map<std::string, ModelStamp>;

  // Records the state that was loaded, or whose loading was tried.
  void Applied(const std::string& model, const ModelStamp& stamp) { applied_[model] = stamp; }

  // Returns the models to be reloaded, sorted: those that were changed, added or removed (not in `seen`)
  // compared with their applied state, and are unchanged since the last call. A model is returned until it is
  // applied or forgotten.
  std::vector<std::string> Look(const Stamps& seen);

  // Forgets a removed model.
  void Forget(const std::string& model);

  bool empty() const { return applied_.empty(); }

 private:
  Stamps applied_;
  // Changed states that only one call has seen; nullopt if the model was removed.
  std::map<std::string, std::optional<ModelStamp>> changing_;
};

}  // namespace saccade::server
