// What those are told who ask for Triton's extensions that are not there, in whichever protocol.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// UNAVAILABLE, as of a Triton that was built without traces.
absl::Status NoTraces();

// There are no regions on GPUs: the status of all of them is empty, of one it is NOT_FOUND. Unregistering has
// nothing to do, which clients that tidy up before they begin rely on.
absl::Status CudaRegionStatus(absl::string_view name);

// UNIMPLEMENTED.
absl::Status NoCudaRegions();

}  // namespace saccade::server
