#include "server/metrics/capture_metrics.h"

#include <array>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct CaptureMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;
  using Gauge = ::saccade::server::Series<prometheus::Gauge>;

  Counter calls;
  Counter written_bytes;
  Gauge bytes;
  std::array<Counter, 4> dropped;  // by CaptureLoss
  Counter events;
  std::array<Counter, 2> events_dropped;  // by EventLoss
};

CaptureMetrics::CaptureMetrics(Families* families) {
  SaccadeFamilies& ours = families->ours;
  series_ = std::make_unique<Series>(Series{ours.captured.Get({}),
                                            ours.captured_bytes.Get({}),
                                            ours.capture_bytes.Get({}),
                                            {ours.capture_dropped.Get({{"reason", "queue_full"}}),
                                             ours.capture_dropped.Get({{"reason", "write_failed"}}),
                                             ours.capture_dropped.Get({{"reason", "too_large"}}),
                                             ours.capture_dropped.Get({{"reason", "too_many_faults"}})},
                                            ours.capture_events.Get({}),
                                            {ours.capture_events_dropped.Get({{"reason", "queue_full"}}),
                                             ours.capture_events_dropped.Get({{"reason", "send_failed"}})}});
}

CaptureMetrics::~CaptureMetrics() = default;

void CaptureMetrics::AddWritten(int64_t bytes) {
  series_->calls->Increment();
  series_->written_bytes->Increment(static_cast<double>(bytes));
}

void CaptureMetrics::AddDropped(CaptureLoss why) { series_->dropped[static_cast<size_t>(why)]->Increment(); }

void CaptureMetrics::SetBytes(int64_t bytes) { series_->bytes->Set(static_cast<double>(bytes)); }

void CaptureMetrics::AddEventsSent(int64_t events) {
  series_->events->Increment(static_cast<double>(events));
}

void CaptureMetrics::AddEventsDropped(EventLoss why, int64_t events) {
  series_->events_dropped[static_cast<size_t>(why)]->Increment(static_cast<double>(events));
}

}  // namespace saccade::server
