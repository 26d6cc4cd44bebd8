#include "server/metrics/load_meter.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Short enough for a load balancer, and long enough for passes that take a second.
constexpr double kMemorySeconds = 5;
// Below so many requests a second, the ratio of two averages says nothing.
constexpr double kMinRequestsPerSecond = 0.01;

}  // namespace

void LoadMeter::Sample(absl::Time now, const LoadCounters& counters) {
  report_.waiting = counters.waiting;
  const Totals totals = {.requests = counters.requests,
                         .failures = counters.failures,
                         .overload = counters.overload,
                         .demand_of_cores = counters.demand_of_cores,
                         .demand_of_gpus = counters.demand_of_gpus};
  const double seconds = absl::ToDoubleSeconds(now - sampled_);
  if (seconds <= 0) return;
  const Totals before = totals_;
  totals_ = totals;
  sampled_ = now;
  // The first sample only says where the counters are.
  if (!std::isfinite(seconds)) return;
  const double weight = 1 - std::exp(-seconds / kMemorySeconds);
  const auto average = [&](double& rate, int64_t since, int64_t to, double unit) {
    rate += weight * (static_cast<double>(to - since) / unit / seconds - rate);
  };
  average(report_.requests_per_second, before.requests, totals.requests, 1);
  average(report_.failures_per_second, before.failures, totals.failures, 1);
  average(overload_per_second_, before.overload, totals.overload, 1);
  average(cores_, before.demand_of_cores, totals.demand_of_cores, 1e9);
  average(gpus_, before.demand_of_gpus, totals.demand_of_gpus, 1e9);
  report_.utilization = std::max(cores_, gpus_);
  report_.overload_ratio = report_.requests_per_second < kMinRequestsPerSecond
                               ? 0
                               : std::min(1.0, overload_per_second_ / report_.requests_per_second);
}

}  // namespace saccade::server
