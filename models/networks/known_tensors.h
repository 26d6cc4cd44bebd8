// Keeps the tensors of networks, which take longer to list than to compare with a file. Does not include
// LibTorch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "models/api/options.h"
#include "models/networks/network_tensors.h"

namespace saccade::models {

// Lists the tensors of each network at most once: with its default options once in the process, with others
// once for each object. Not thread-safe; several objects may be used at once.
class KnownTensors {
 public:
  // Like TensorsOf(). The result lives as long as this object.
  const NetworkTensors& Of(const std::string& architecture, const Options& options);

 private:
  std::map<std::pair<std::string, Options>, std::shared_ptr<const NetworkTensors>> known_;
};

}  // namespace saccade::models
