// Maps exceptions of a forward pass to errors.
#pragma once

#include <exception>

#include "absl/status/status.h"

namespace saccade::server {

// RESOURCE_EXHAUSTED if host or GPU memory was insufficient; UNAVAILABLE with IsDeviceLost() if the GPU will
// fail all later calls; otherwise INTERNAL with the exception's message.
absl::Status PassFailure(const std::exception& error);

}  // namespace saccade::server
