#include "server/inference/absent_extensions.h"

namespace saccade::server {

absl::Status TraceExtensionUnsupported() {
  return absl::UnavailableError(
      "the trace extension is not supported; saccaded exports spans by OpenTelemetry, to the collector that "
      "OTEL_EXPORTER_OTLP_ENDPOINT in its environment names");
}

}  // namespace saccade::server
