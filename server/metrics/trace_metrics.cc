#include "server/metrics/trace_metrics.h"

#include <array>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct TraceMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;

  Counter exported;
  std::array<Counter, 3> dropped;  // by SpanLoss
};

TraceMetrics::TraceMetrics(Families* families) {
  auto& dropped = families->ours.spans_dropped;
  series_ = std::make_unique<Series>(
      Series{families->ours.spans_exported.Get({}),
             {dropped.Get({{"reason", "queue_full"}}), dropped.Get({{"reason", "export_failed"}}),
              dropped.Get({{"reason", "rejected"}})}});
}

TraceMetrics::~TraceMetrics() = default;

void TraceMetrics::AddExported(int64_t spans) { series_->exported->Increment(static_cast<double>(spans)); }

void TraceMetrics::AddDropped(SpanLoss why, int64_t spans) {
  series_->dropped[static_cast<size_t>(why)]->Increment(static_cast<double>(spans));
}

}  // namespace saccade::server
