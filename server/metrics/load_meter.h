// How busy the daemon is at present: what load balancers and autoscalers ask for.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

// Counters since the start of the daemon. The members are updated by many threads, independently of one
// another.
struct LoadCounters {
  // Requests that ended, and those of them that failed by the server's fault. Steps of ensembles count too.
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> failures{0};
  // Requests rejected because of overload.
  std::atomic<int64_t> overload{0};
  // Nanoseconds of all cores, and of all GPUs, that requests needed which arrived, rejected ones included.
  std::atomic<int64_t> demand_of_cores{0};
  std::atomic<int64_t> demand_of_gpus{0};
  // Requests that wait for a forward pass now.
  std::atomic<int64_t> waiting{0};
};

struct LoadReport {
  // The share of the cores, or of the GPUs if that is more, that requests ask for; above 1 they cannot all be
  // answered.
  double utilization = 0;
  double requests_per_second = 0;
  double failures_per_second = 0;
  // The share of the requests that are rejected because of overload, 0 to 1.
  double overload_ratio = 0;
  int64_t waiting = 0;
};

// Averages over about the last five seconds. Not thread-safe.
class LoadMeter {
 public:
  // Call it periodically. Times that do not advance change nothing but `waiting`.
  void Sample(absl::Time now, const LoadCounters& counters);

  const LoadReport& report() const { return report_; }

 private:
  // The counters at a sample.
  struct Totals {
    int64_t requests = 0;
    int64_t failures = 0;
    int64_t overload = 0;
    int64_t demand_of_cores = 0;
    int64_t demand_of_gpus = 0;
  };

  absl::Time sampled_ = absl::InfinitePast();
  Totals totals_;
  double overload_per_second_ = 0;
  double cores_ = 0;
  double gpus_ = 0;
  LoadReport report_;
};

}  // namespace saccade::server
