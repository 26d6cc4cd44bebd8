// Which models' files have changed, and are not being written any more.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/repository/stamps.h"

namespace saccade::server {

// What is seen of a repository again and again. A change counts once two looks in a row have seen it alike:
// files that are still being written look different each time. No time but that of its calls. Not
// thread-safe.
class Settling {
 public:
  using Stamps = std::map<std::string, ModelStamp>;

  // What was loaded, or tried.
  void Applied(const std::string& model, const ModelStamp& stamp) { applied_[model] = stamp; }

  // Models to be looked at anew, sorted: changed since they were applied, or new, or gone (which are not in
  // `seen`), and as they were at the last call. Each is returned until it is applied or forgotten.
  std::vector<std::string> Look(const Stamps& seen);

  // A model that is gone, and nobody's any more.
  void Forget(const std::string& model);

  bool empty() const { return applied_.empty(); }

 private:
  Stamps applied_;
  // Changes that one look has seen; none: gone.
  std::map<std::string, std::optional<ModelStamp>> changing_;
};

}  // namespace saccade::server
