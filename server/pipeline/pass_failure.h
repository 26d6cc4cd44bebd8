// What the exceptions of a forward pass mean.
#pragma once

#include <exception>

#include "absl/status/status.h"

namespace saccade::server {

// RESOURCE_EXHAUSTED where memory, the host's or a GPU's, did not suffice; UNAVAILABLE, and IsDeviceLost,
// where the GPU will refuse whatever comes; otherwise INTERNAL, with what was said.
absl::Status PassFailure(const std::exception& error);

}  // namespace saccade::server
