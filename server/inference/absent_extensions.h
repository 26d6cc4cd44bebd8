// Statuses for Triton extensions that are not supported, in any protocol.
#pragma once

#include "absl/status/status.h"

namespace saccade::server {

// UNAVAILABLE, the code of a Triton server that was built without tracing. Traces of saccaded are configured
// by OpenTelemetry's environment variables (server/tracing/trace_settings.h), and not by clients.
absl::Status TraceExtensionUnsupported();

}  // namespace saccade::server
