// What a configuration does with a model's traffic: the daemon's own scheduler, run on measured latencies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/simulation/virtual_time.h"
#include "server/simulation/workload.h"

namespace saccade::server::simulation {

// What was measured of a model with one precision and one number of threads for each pass.
struct MeasuredModel {
  std::string precision;
  // Cores of one pass, and cores of the machine. On a GPU, a pass counts as one core.
  int threads = 1;
  int cores = 1;
  // Mean time of a pass by bucket and by size; the first size is 1. All buckets have equally many sizes.
  std::vector<std::vector<Nanos>> passes;
  // Standard deviation of a pass's time, relative to its mean.
  double deviation = 0;
  // Time that a request spends outside of queue and passes: decoding and the way to the daemon and back.
  Nanos outside = {};
  // Time of a core that decoding a request takes.
  Nanos decode = {};

  int64_t max_batch_size() const { return static_cast<int64_t>(passes.front().size()); }
  // Maximum number of passes that run at the same time on the machine. A model has at most 64 instances.
  int max_instances() const { return std::clamp(cores / threads, 1, 64); }
};

struct Traffic {
  // Requests per second.
  double rate = 0;
  // Coefficient of variation of the gaps: 1 is Poisson.
  double cv = 1;
  // Share of each bucket of the MeasuredModel. Sums to 1.
  std::vector<double> mix = {1};
  // If not null, arrivals that were recorded, ascending and with more than one time; replayed so fast that
  // they have `rate`.
  std::shared_ptr<const std::vector<Arrival>> recorded = nullptr;
};

struct LatencyGoal {
  // 99 of 100 requests, rejected ones included, have to be answered within this time.
  Nanos p99 = 100 * kMillisecond;
  // The deadline that clients set; kNever if they set none.
  Nanos deadline = kNever;
};

// What can be configured.
struct Configuration {
  int replicas = 1;
  int instances = 1;
  int64_t max_batch_size = 1;
  // Maximum number of queued requests in one replica.
  int64_t max_queue_size = 1;
};

struct Estimate {
  // The median latency of answered requests; 0 if there are none.
  Nanos p50 = {};
  // Rejected requests count as slower than all others, so this is kNever if more than one in 100 is rejected.
  Nanos p99 = {};
  // Requests per second that are answered within LatencyGoal::p99, by all replicas.
  double goodput = 0;
  // Shares of the requests.
  double answered = 0;
  double queue_full = 0;
  double too_late = 0;
  // Share of the time in which an instance computes.
  double busy = 0;
  // What the metric saccade_demand says of a replica: the share of its instances that requests ask for.
  double demand = 0;
  double mean_batch = 0;
  // Number of requests of one replica that were counted.
  int64_t requests = 0;
  // Share of the recorded requests that the replicas got; below 1 these were the busiest stretch of them.
  double replayed = 1;

  bool Meets(const LatencyGoal& goal) const { return p99 <= goal.p99; }
};

struct EstimateOptions {
  // Number of requests of one replica that are simulated. Recorded requests are repeated until there are
  // about so many. If the replica's share of a recording is larger, all of the share is played, once.
  int64_t requests = 30'000;
  // Maximum number of recorded requests of one replica. Of a longer recording, only the busiest stretch is
  // played: the requests in a row that arrived in the shortest time.
  int64_t max_recorded = 300'000;
  uint64_t seed = 1;
};

// Simulates one replica, which gets its share of the traffic. REQUIRES: the numbers of `configuration` are
// positive and max_batch_size is at most that of `model`; traffic.rate > 0.
Estimate EstimateOf(const MeasuredModel& model, const Traffic& traffic, const Configuration& configuration,
                    const LatencyGoal& goal, const EstimateOptions& options = {});

}  // namespace saccade::server::simulation
