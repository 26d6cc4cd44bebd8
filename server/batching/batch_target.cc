#include "server/batching/batch_target.h"

#include <algorithm>
#include <cmath>

namespace saccade::server {
namespace {

// Load divided by capacity above which a level counts as overloaded, so that only requests that the next
// batch can take are accepted. Above 1, because apparent overload is often a burst that the queue absorbs.
constexpr double kMinOverload = 1.25;
// Minimum share of the load of an active bucket.
constexpr double kMinActiveShare = 0.02;

struct BucketLoad {
  Bucket* bucket = nullptr;
  // Items per nanosecond.
  double rate = 0;
};

}  // namespace

Nanos RateMemory(const Bucket& bucket) {
  constexpr Nanos kMin = 50 * kMillisecond;
  // If a pass took longer than the memory, a lone request would look like more than the model can carry.
  const Nanos max = std::max(2 * kSecond, 3 * bucket.latency.Upper(1));
  return std::clamp(3 * bucket.patience, kMin, max);
}

int64_t SetTargets(const std::vector<Bucket*>& buckets, size_t level, double share, double instances,
                   int64_t max_batch_size, NanoTime now) {
  std::vector<BucketLoad> loads;
  loads.reserve(buckets.size());
  double total = 0;
  for (Bucket* bucket : buckets) {
    loads.push_back({bucket, share * bucket->arrivals.At(now, RateMemory(*bucket))});
    total += loads.back().rate;
  }
  int64_t active = 0;
  double computing = 0;
  double starting = 0;
  for (const BucketLoad& load : loads) {
    if (load.rate > kMinActiveShare * total) ++active;
    computing += load.rate * load.bucket->latency.each().count();
    starting += std::sqrt(load.rate * load.bucket->latency.fixed().count());
  }
  const double others = static_cast<double>(active) / instances;
  double needed = 0;
  for (const BucketLoad& load : loads) {
    const LatencyModel& latency = load.bucket->latency;
    const int64_t within = latency.LargestWithin(load.bucket->patience / (1 + others), max_batch_size);
    const int64_t largest = std::max<int64_t>(1, within);
    load.bucket->targets[level].largest = largest;
    needed += load.rate * latency.Upper(largest).count() / static_cast<double>(largest);
  }
  const double spare = instances - computing;
  const bool saturated = needed > instances || spare <= 0;
  for (const BucketLoad& load : loads) {
    BatchTarget& target = load.bucket->targets[level];
    target.overloaded = load.rate > 0 && needed > kMinOverload * instances;
    if (saturated && load.rate > 0) {
      const auto upper = [&](int64_t size) { return load.bucket->latency.Upper(size); };
      target.size =
          std::max(target.largest, GatheredInTime(upper, load.rate, load.bucket->patience, max_batch_size));
    } else {
      const double size =
          std::sqrt(load.rate * load.bucket->latency.fixed().count()) * starting / std::max(spare, 1e-9);
      target.size =
          static_cast<int64_t>(std::clamp(std::ceil(size), 1.0, static_cast<double>(target.largest)));
    }
  }
  return active;
}

}  // namespace saccade::server
