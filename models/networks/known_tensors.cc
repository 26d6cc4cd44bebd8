#include "models/networks/known_tensors.h"

#include <mutex>

namespace saccade::models {
namespace {

// With default options. There are as many as architectures, so they are kept for ever.
std::shared_ptr<const NetworkTensors> DefaultTensors(const std::string& architecture) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::shared_ptr<const NetworkTensors>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const NetworkTensors>& tensors = (*known)[architecture];
  if (tensors == nullptr) tensors = std::make_shared<const NetworkTensors>(TensorsOf(architecture, {}));
  return tensors;
}

}  // namespace

const NetworkTensors& KnownTensors::Of(const std::string& architecture, const Options& options) {
  std::shared_ptr<const NetworkTensors>& tensors = known_[{architecture, options}];
  if (tensors == nullptr) {
    tensors = options.empty() ? DefaultTensors(architecture)
                              : std::make_shared<const NetworkTensors>(TensorsOf(architecture, options));
  }
  return *tensors;
}

}  // namespace saccade::models
