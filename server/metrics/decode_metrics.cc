#include "server/metrics/decode_metrics.h"

#include <string>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct DecodeMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;
  using Gauge = ::saccade::server::Series<prometheus::Gauge>;

  std::vector<Counter> ends;
  Gauge busy;
  Gauge idle;
  Counter started;
};

DecodeMetrics::DecodeMetrics(Families* families, const std::vector<std::string_view>& reasons)
    : series_(new Series{{},
                         families->ours.decode_workers.Get({{"state", "busy"}}),
                         families->ours.decode_workers.Get({{"state", "idle"}}),
                         families->ours.decode_worker_starts.Get({})}) {
  for (const std::string_view reason : reasons)
    series_->ends.push_back(families->ours.decode_worker_ends.Get({{"reason", std::string(reason)}}));
}

DecodeMetrics::~DecodeMetrics() = default;

void DecodeMetrics::RecordEnd(size_t reason) { series_->ends[reason]->Increment(); }

void DecodeMetrics::SetWorkers(int64_t busy, int64_t idle, int64_t started) {
  series_->busy->Set(static_cast<double>(busy));
  series_->idle->Set(static_cast<double>(idle));
  series_->started->Increment(static_cast<double>(started) - series_->started->Value());
}

}  // namespace saccade::server
