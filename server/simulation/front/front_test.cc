// Plays 300 seeds, with AddressSanitizer 60; SACCADE_FRONT_SEEDS sets another number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "server/simulation/front/front_world.h"

namespace saccade::server::simulation {
namespace {

uint64_t Seeds() {
  const char* const wanted = std::getenv("SACCADE_FRONT_SEEDS");
#ifdef SACCADE_ASAN
  constexpr uint64_t kSeeds = 60;
#else
  constexpr uint64_t kSeeds = 300;
#endif
  return wanted == nullptr ? kSeeds : std::stoull(wanted);
}

TEST(FrontWorldTest, NothingIsViolated) {
  FrontResult all;
  int drained = 0;
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    const FrontResult result = RunFrontSeed(seed);
    EXPECT_THAT(result.violations, ::testing::IsEmpty()) << "seed " << seed;
    all.calls_begun += result.calls_begun;
    all.calls_answered += result.calls_answered;
    all.calls_refused += result.calls_refused;
    drained += result.drained ? 1 : 0;
  }
  // Each outcome has occurred.
  EXPECT_GT(all.calls_begun, 1000);
  EXPECT_GT(all.calls_answered, 1000);
  EXPECT_GT(all.calls_refused, 10);
  EXPECT_GT(drained, 10);
}

}  // namespace
}  // namespace saccade::server::simulation
