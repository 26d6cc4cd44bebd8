// Runs a bounded number of seeds. `./dev simulate` runs more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/simulation/faults/run_seed.h"

namespace saccade::server::simulation {
namespace {

using ::testing::IsEmpty;

TEST(SeedsTest, NothingIsViolated) {
  Tally tally;
#ifdef SACCADE_ASAN
  constexpr uint64_t kSeeds = 20;
#else
  constexpr uint64_t kSeeds = 60;
#endif
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SeedResult result = RunSeed(seed);
    EXPECT_THAT(result.violations, IsEmpty()) << "./dev simulate --seed " << seed;
    tally.Add(result.tally);
  }
  // Every outcome has occurred.
  for (const Outcome outcome : {Outcome::kInTime, Outcome::kLate, Outcome::kRefused, Outcome::kShed,
                                Outcome::kCancelled, Outcome::kFailed}) {
    EXPECT_GT(tally[outcome], 100) << static_cast<int>(outcome);
  }
}

// A seed among many in which retries started that could not end in time: their passes had failed while the
// estimate of their time was doubted, and a pass that ended meanwhile had confirmed it.
TEST(SeedsTest, ARetryStartsOnlyIfItCanEndInTime) {
  Features features;
  for (const Feature feature :
       {Feature::kSlowPasses, Feature::kHangs, Feature::kReloads, Feature::kJitter, Feature::kPriorities,
        Feature::kTimeouts, Feature::kPreferred, Feature::kSharedCores, Feature::kDevices})
    features.LeaveOut(feature);
  EXPECT_THAT(RunSeed(5009668, features).violations, IsEmpty());
}

TEST(SeedsTest, ASeedIsReplayed) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(RunSeed(seed).trace_hash, RunSeed(seed).trace_hash);
  }
}

TEST(SeedsTest, OptionsAreSound) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Scenario scenario = DrawScenario(seed, {});
    for (const BatcherOptions& options : scenario.batchers) {
      EXPECT_TRUE(CheckOptions(options).ok()) << seed << ": " << CheckOptions(options);
    }
  }
}

}  // namespace
}  // namespace saccade::server::simulation
