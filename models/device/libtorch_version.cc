#include "models/device/libtorch_version.h"

#include <torch/csrc/api/include/torch/version.h>

namespace saccade::models {

std::string LibTorchVersion() { return TORCH_VERSION; }

}  // namespace saccade::models
