#include "server/lifecycle/observability.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "server/logging/log.h"
#include "server/tracing/trace_settings.h"

namespace saccade::server {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

void Count(TraceMetrics& metrics, SpanFate fate, int64_t spans) {
  switch (fate) {
    case SpanFate::kExported:
      metrics.AddExported(spans);
      return;
    case SpanFate::kQueueFull:
      metrics.AddDropped(SpanLoss::kQueueFull, spans);
      return;
    case SpanFate::kFailed:
      metrics.AddDropped(SpanLoss::kExportFailed, spans);
      return;
    case SpanFate::kRejected:
      metrics.AddDropped(SpanLoss::kRejected, spans);
      return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Observability>> Observability::Create(const Flags& flags, Metrics* metrics,
                                                                     Clock* clock) {
  auto settings = ReadTraceSettings(Variable);
  if (!settings.ok()) return settings.status();
  std::unique_ptr<Observability> observability(new Observability);
  CallWatch::Options watch{.clock = clock};
  if (settings->has_value()) {
    const TraceSettings& traces = **settings;
    auto collector = CollectorClient::Create(traces, SACCADE_VERSION);
    if (!collector.ok()) return collector.status();
    observability->collector_ = *std::move(collector);
    observability->metrics_ = metrics->ForTraces();
    observability->exporter_ = std::make_unique<SpanExporter>(
        SpanExporter::Options{
            .max_queued = traces.max_queued,
            .max_in_batch = traces.max_in_batch,
            .delay = traces.delay,
            .max_trying = traces.max_trying,
            .send = [client = observability->collector_.get()](
                        const std::vector<Span>& spans, absl::Duration max,
                        const std::function<bool()>& given_up) { return client->Send(spans, max, given_up); },
            .count = [counters = observability->metrics_.get()](
                         SpanFate fate, int64_t spans) { Count(*counters, fate, spans); },
            .warn =
                [endpoint = traces.endpoint](const std::string& why) {
                  Log(LogLevel::kWarning, "spans were dropped", {{"endpoint", endpoint}, {"why", why}});
                }},
        clock);
    watch.exporter = observability->exporter_.get();
    watch.sampler = traces.sampler;
    Log(LogLevel::kInfo, "exporting traces",
        {{"endpoint", traces.endpoint}, {"service", traces.service_name}});
  }
  if (flags.access_log) {
    observability->access_log_ = std::make_unique<AccessLog>(flags.access_log_per_second, clock);
    watch.access_log = [log = observability->access_log_.get()](const CallFacts& call) { log->Write(call); };
  }
  if (watch.exporter != nullptr || watch.access_log != nullptr)
    observability->watch_.emplace(std::move(watch));
  return observability;
}

void Observability::Flush(absl::Duration max) {
  if (exporter_ != nullptr) exporter_->Stop(max);
}

}  // namespace saccade::server
