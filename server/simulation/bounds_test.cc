#include "server/simulation/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "server/simulation/workload.h"

namespace saccade::server::simulation {
namespace {

constexpr LinearLatency kLatency = {.alpha = 5 * kMillisecond, .beta = kMillisecond / 2};

// The earliest end if exactly these requests are served in order, over all ways to cut them into batches;
// kNever if some request is always late.
Nanos EarliestEnd(const std::vector<Nanos>& arrivals, Nanos deadline, int64_t max_batch_size) {
  const auto n = static_cast<int>(arrivals.size());
  if (n == 0) return {};
  Nanos best = kNever;
  for (uint32_t cuts = 0; cuts < 1u << (n - 1); ++cuts) {
    Nanos idle;
    bool in_time = true;
    for (int from = 0, to = 1; from < n; from = to++) {
      while (to < n && !(cuts >> (to - 1) & 1)) ++to;
      idle = std::max(idle, arrivals[to - 1]) + kLatency(to - from);
      in_time = in_time && to - from <= max_batch_size && idle <= arrivals[from] + deadline;
    }
    if (in_time) best = std::min(best, idle);
  }
  return best;
}

// Tries every subset of the requests.
int64_t FewestMissedByTrying(const std::vector<Nanos>& arrivals, Nanos deadline, int64_t max_batch_size) {
  const auto n = static_cast<int>(arrivals.size());
  int64_t fewest = n;
  for (uint32_t served = 0; served < 1u << n; ++served) {
    std::vector<Nanos> some;
    for (int i = 0; i < n; ++i) {
      if (served >> i & 1) some.push_back(arrivals[i]);
    }
    if (EarliestEnd(some, deadline, max_batch_size) == kNever) continue;
    fewest = std::min<int64_t>(fewest, n - std::popcount(served));
  }
  return fewest;
}

TEST(BoundsTest, HindsightIsTheBestOfAllSchedules) {
  int missed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Stream stream({.rate = 400.0 + 40 * static_cast<double>(seed % 10), .cv = seed % 2 == 0 ? 2.0 : 1.0},
                  seed);
    std::vector<Nanos> arrivals;
    for (int i = 0; i < 9; ++i) arrivals.push_back(stream.Next().at);
    const int64_t max_batch_size = 1 + static_cast<int64_t>(seed % 4);
    const Nanos deadline = static_cast<double>(7 + seed % 5) * kMillisecond;
    const int64_t expected = FewestMissedByTrying(arrivals, deadline, max_batch_size);
    missed += static_cast<int>(expected);
    EXPECT_EQ(FewestMissed(kLatency, arrivals, deadline, max_batch_size, 9), expected) << "seed " << seed;
  }
  EXPECT_GT(missed, 60);
}

TEST(BoundsTest, HindsightStopsCountingAtTheMost) {
  const std::vector<Nanos> together(10, kMillisecond);
  EXPECT_EQ(FewestMissed(kLatency, together, 6 * kMillisecond, 2, 20), 8);
  EXPECT_EQ(FewestMissed(kLatency, together, 6 * kMillisecond, 2, 3), 4);
}

TEST(BoundsTest, HindsightIsIdleBetweenRequestsFarApart) {
  EXPECT_EQ(FewestMissed(kLatency, {Nanos(), kSecond, 2 * kSecond}, 6 * kMillisecond, 8, 3), 0);
}

// The cycle serves K batches of size b on N instances at rate G. A request waits for at most one cycle and
// then for its own batch.
TEST(BoundsTest, TheServeAllRateFillsItsDeadline) {
  for (const int instances : {1, 2, 4}) {
    for (const int buckets : {1, 4}) {
      const Nanos deadline = 100 * kMillisecond;
      const double rate = ServeAllRate(kLatency, instances, buckets, deadline, 1000);
      ASSERT_GT(rate, 0);
      const double share = 1 + static_cast<double>(buckets) / instances;
      const double batch = (ToMilliseconds(deadline) / share - 5) / 0.5;
      const double cycle_ms = batch * buckets / rate * 1e3;
      EXPECT_NEAR(cycle_ms + 5 + 0.5 * batch, 100, 1e-6) << instances << " " << buckets;
    }
  }
}

TEST(BoundsTest, TheServeAllRateIsThatOfFullBatchesWhereTheyAreSmall) {
  EXPECT_NEAR(ServeAllRate(kLatency, 2, 1, 100 * kMillisecond, 10), 2000, 1e-6);
}

TEST(BoundsTest, NothingServesAllIfOnePassOfEachIsTooMuch) {
  EXPECT_EQ(ServeAllRate(kLatency, 1, 32, 100 * kMillisecond, 64), 0);
}

TEST(BoundsTest, OverloadFillsTheLargestBatchInTime) {
  // 10 requests arrive per millisecond: (b - 1) / 10 + 5 + b / 2 <= 25 for b up to 33.
  EXPECT_NEAR(OverloadGoodput(kLatency, 2, 10'000, 25 * kMillisecond, 1000), 2 * 33 / 0.0215, 1e-6);
  EXPECT_NEAR(OverloadGoodput(kLatency, 1, 10'000, 25 * kMillisecond, 8), 8 / 0.009, 1e-6);
  EXPECT_EQ(OverloadGoodput(kLatency, 1, 100, 25 * kMillisecond, 8), 100);
  EXPECT_EQ(OverloadGoodput(kLatency, 1, 100, 5 * kMillisecond, 8), 0);
}

}  // namespace
}  // namespace saccade::server::simulation
