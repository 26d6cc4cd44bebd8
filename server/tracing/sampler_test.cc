#include "server/tracing/sampler.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace saccade::server {
namespace {

const std::optional<SpanContext> kNoParent;

SpanContext Parent(bool sampled) { return {.trace = {1, 2}, .span = 3, .sampled = sampled}; }

TEST(Sampler, TakesAllOrNone) {
  EXPECT_TRUE((Sampler{.share = 1}.Samples({0, ~uint64_t{0}}, kNoParent)));
  EXPECT_FALSE((Sampler{.share = 0}.Samples({0, 0}, kNoParent)));
}

TEST(Sampler, FollowsItsClientOnlyIfItIsTo) {
  EXPECT_TRUE((Sampler{.share = 0, .follows_client = true}.Samples({0, 1}, Parent(true))));
  EXPECT_FALSE((Sampler{.share = 1, .follows_client = true}.Samples({0, 1}, Parent(false))));
  EXPECT_FALSE((Sampler{.share = 0, .follows_client = false}.Samples({0, 1}, Parent(true))));
  EXPECT_TRUE((Sampler{.share = 1, .follows_client = false}.Samples({0, 1}, Parent(false))));
}

TEST(Sampler, DecidesByTheTracesId) {
  const Sampler quarter{.share = 0.25};
  // The low 63 bits of the last eight bytes decide; the lowest bit of all 64 does not matter.
  EXPECT_TRUE(quarter.Samples({0, (uint64_t{1} << 62) - 1}, kNoParent));
  EXPECT_FALSE(quarter.Samples({0, uint64_t{1} << 62}, kNoParent));
  EXPECT_FALSE(quarter.Samples({0, ~uint64_t{0}}, kNoParent));
}

TEST(Sampler, TakesItsShareOfRandomTraces) {
  const Sampler tenth{.share = 0.1};
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) taken += tenth.Samples(NewTraceId(), kNoParent) ? 1 : 0;
  // The tolerance is eight standard deviations.
  EXPECT_NEAR(taken, 2000, 340);
}

}  // namespace
}  // namespace saccade::server
