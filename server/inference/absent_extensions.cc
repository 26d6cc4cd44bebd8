#include "server/inference/absent_extensions.h"

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"

namespace saccade::server {

absl::Status TraceExtensionUnsupported() {
  return absl::UnavailableError(
      "the trace extension is not supported; saccaded exports spans by OpenTelemetry, to the collector that "
      "OTEL_EXPORTER_OTLP_ENDPOINT in its environment names");
}

absl::Status CudaRegionStatus(absl::string_view name) {
  if (name.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("CUDA shared memory region ", Shown(name),
                                          " is not registered; CUDA shared memory is not supported"));
}

absl::Status NoCudaRegions() {
  return absl::UnimplementedError(
      "CUDA shared memory is not supported; send the bytes, or use system shared memory");
}

}  // namespace saccade::server
