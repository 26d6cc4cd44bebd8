// Observability of single calls: exports spans to a collector, and writes the access log.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/lifecycle/flags.h"
#include "server/metrics/metrics.h"
#include "server/tracing/access_log.h"
#include "server/tracing/call_watch.h"
#include "server/tracing/collector_client.h"
#include "server/tracing/span_exporter.h"

namespace saccade::server {

class Observability {
 public:
  // Configured by the flags and the environment. Errors can be printed as they are. `metrics` and `clock`
  // must outlive this object.
  static absl::StatusOr<std::unique_ptr<Observability>> Create(const Flags& flags, Metrics* metrics,
                                                               Clock* clock);

  // Null if calls are neither traced nor logged. This object must outlive every call that it recorded.
  const CallWatch* watch() const { return watch_ ? &*watch_ : nullptr; }

  // Exports the queued spans for at most `max`; later spans are dropped.
  void Flush(absl::Duration max);

 private:
  Observability() = default;

  std::unique_ptr<TraceMetrics> metrics_;
  std::unique_ptr<CollectorClient> collector_;
  std::unique_ptr<AccessLog> access_log_;
  std::unique_ptr<SpanExporter> exporter_;
  std::optional<CallWatch> watch_;
};

}  // namespace saccade::server
