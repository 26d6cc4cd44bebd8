// What the daemon tells of single calls, and to whom: spans to a collector, lines to the access log.
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

class Telling {
 public:
  // As the flags and the environment say; the error is fit to be printed. `metrics` and `clock` must outlive
  // it.
  static absl::StatusOr<std::unique_ptr<Telling>> Create(const Flags& flags, Metrics* metrics, Clock* clock);

  // Null if nothing is to be told. This must outlive every call that it watched.
  const CallWatch* watch() const { return watch_ ? &*watch_ : nullptr; }

  // Sends what spans there are, for no longer than `most`; what comes later is dropped.
  void Flush(absl::Duration most);

 private:
  Telling() = default;

  std::unique_ptr<TraceMetrics> metrics_;
  std::unique_ptr<CollectorClient> collector_;
  std::unique_ptr<AccessLog> access_log_;
  std::unique_ptr<SpanExporter> exporter_;
  std::optional<CallWatch> watch_;
};

}  // namespace saccade::server
