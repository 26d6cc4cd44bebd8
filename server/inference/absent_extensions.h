// Statuses for Triton extensions that are not supported, in any protocol.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// UNAVAILABLE, the code of a Triton server that was built without tracing. Traces of saccaded are configured
// by OpenTelemetry's environment variables (server/tracing/trace_settings.h), and not by clients.
absl::Status TraceExtensionUnsupported();

// The status of CUDA shared memory regions, none of which can exist: OK if `name` is empty (all regions, an
// empty list), otherwise NOT_FOUND. Unregistering succeeds without effect, on which clients that clean up at
// start rely.
absl::Status CudaRegionStatus(absl::string_view name);

// UNIMPLEMENTED.
absl::Status NoCudaRegions();

}  // namespace saccade::server
