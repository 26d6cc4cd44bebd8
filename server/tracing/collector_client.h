// POSTs batches of spans to a collector, as OTLP in protobuf over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/tracing/otlp_messages.h"
#include "server/tracing/span_exporter.h"
#include "server/tracing/trace_settings.h"

namespace saccade::server {

// Not thread-safe. Keeps its connection. Does not follow redirects, and reads at most 64 KiB of a response.
class CollectorClient {
 public:
  // `version` is the daemon's version.
  static absl::StatusOr<std::unique_ptr<CollectorClient>> Create(const TraceSettings& settings,
                                                                 const std::string& version);
  ~CollectorClient();

  // See SpanExporter::Options::send.
  SendOutcome Send(const std::vector<Span>& spans, absl::Duration max, const std::function<bool()>& given_up);

 private:
  struct Handle;
  CollectorClient(const TraceSettings& settings, const std::string& version, std::unique_ptr<Handle> handle);

  const std::string version_;
  const absl::Duration timeout_;
  const ResourceAttributes resource_;
  const std::unique_ptr<Handle> handle_;
};

}  // namespace saccade::server
