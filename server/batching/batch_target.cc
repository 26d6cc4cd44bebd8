#include "server/batching/batch_target.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Of a deadline and of the instances' time, so much is planned with.
constexpr double kPlanned = 0.95;
constexpr double kActiveShare = 0.02;

struct Load {
  Bucket* bucket = nullptr;
  double rate = 0;
};

// The largest batch that gathers and is computed within the bucket's patience.
int64_t GatheredInTime(const Load& load, int64_t max_batch_size) {
  const LatencyModel& latency = load.bucket->latency;
  int64_t size = 1;
  while (size < max_batch_size && latency.Upper(size + 1) + static_cast<double>(size + 1) / load.rate <=
                                      kPlanned * load.bucket->patience)
    ++size;
  return size;
}

}  // namespace

double RateMemory(const Bucket& bucket) {
  constexpr double kLeast = 50e6;
  constexpr double kMost = 2e9;
  return std::clamp(4 * bucket.patience, kLeast, kMost);
}

int64_t SetTargets(const std::vector<Bucket*>& buckets, double instances, int64_t max_batch_size,
                   int64_t now) {
  std::vector<Load> loads;
  loads.reserve(buckets.size());
  double total = 0;
  for (Bucket* bucket : buckets) {
    loads.push_back({bucket, bucket->arrivals.At(now, RateMemory(*bucket))});
    total += loads.back().rate;
  }
  int64_t active = 0;
  double computing = 0;
  double starting = 0;
  for (const Load& load : loads) {
    if (load.rate > kActiveShare * total) ++active;
    computing += load.rate * load.bucket->latency.each();
    starting += std::sqrt(load.rate * load.bucket->latency.fixed());
  }
  const double others = static_cast<double>(active) / instances;
  double needed = 0;
  for (const Load& load : loads) {
    Bucket& bucket = *load.bucket;
    bucket.target =
        std::max<int64_t>(1, bucket.latency.LargestWithin(bucket.patience / (1 + others), max_batch_size));
    needed += load.rate * bucket.latency.Upper(bucket.target) / static_cast<double>(bucket.target);
  }
  const double spare = kPlanned * instances - computing;
  const bool overloaded = needed > instances || spare <= 0;
  for (const Load& load : loads) {
    Bucket& bucket = *load.bucket;
    if (overloaded) {
      if (load.rate > 0) bucket.target = std::max(bucket.target, GatheredInTime(load, max_batch_size));
    } else {
      const double size = std::sqrt(load.rate * bucket.latency.fixed()) * starting / spare;
      bucket.target = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(size)), 1, bucket.target);
    }
  }
  return active;
}

}  // namespace saccade::server
