// Checks that a model has the priority level that a request asks for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/batching/batcher_options.h"

namespace saccade::server {

// `priority` is Request::priority. INVALID_ARGUMENT lists the levels. A model without levels accepts any
// priority.
absl::Status CheckPriorityLevel(int priority, const std::string& model, const BatcherOptions& options);

}  // namespace saccade::server
