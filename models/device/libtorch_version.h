// Which LibTorch networks are computed with.
#pragma once

#include <string>

namespace saccade::models {

// "2.6.0". Sums may be rounded differently where it differs.
std::string LibTorchVersion();

}  // namespace saccade::models
