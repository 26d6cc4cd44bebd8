#include "server/metrics/front_metrics.h"

#include <string>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct FrontMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;
  using Gauge = ::saccade::server::Series<prometheus::Gauge>;

  std::vector<Counter> refusals;
  std::vector<Gauge> connections;
  Gauge open_requests;
};

FrontMetrics::FrontMetrics(Families* families, const std::vector<std::string_view>& reasons,
                           const std::vector<std::string_view>& ports)
    : series_(new Series{{}, {}, families->ours.front_open_requests.Get({})}) {
  for (const std::string_view reason : reasons)
    series_->refusals.push_back(families->ours.front_refusals.Get({{"reason", std::string(reason)}}));
  for (const std::string_view port : ports)
    series_->connections.push_back(families->ours.front_connections.Get({{"port", std::string(port)}}));
}

FrontMetrics::~FrontMetrics() = default;

void FrontMetrics::RecordRefusal(size_t reason) { series_->refusals[reason]->Increment(); }

void FrontMetrics::SetConnections(size_t port, size_t connections) {
  series_->connections[port]->Set(static_cast<double>(connections));
}

void FrontMetrics::SetOpenRequests(size_t requests) {
  series_->open_requests->Set(static_cast<double>(requests));
}

}  // namespace saccade::server
