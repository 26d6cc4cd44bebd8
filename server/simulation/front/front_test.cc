// Plays 300 seeds, with AddressSanitizer 60; SACCADE_FRONT_SEEDS sets another number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
    all.small_calls += result.small_calls;
    all.small_calls_refused += result.small_calls_refused;
    // A full ledger has no room for 500 bytes only for moments.
    EXPECT_LE(result.small_calls_refused, 2 + result.small_calls / 10) << "seed " << seed;
    drained += result.drained ? 1 : 0;
  }
  // Each outcome has occurred.
  EXPECT_GT(all.calls_begun, 1000);
  EXPECT_GT(all.calls_answered, 1000);
  EXPECT_GT(all.calls_refused, 10);
  EXPECT_GT(drained, 10);
  EXPECT_GT(all.small_calls, 500);
  EXPECT_LE(all.small_calls_refused, all.small_calls / 100);
}

// Whether a violation of one of the first seeds, in a world with the fault, contains `text`.
bool IsNoticed(FrontFault fault, const std::string& text) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FrontResult result = RunFrontSeed(seed, fault);
    if (std::any_of(result.violations.begin(), result.violations.end(),
                    [&](const std::string& what) { return what.find(text) != std::string::npos; }))
      return true;
  }
  return false;
}

TEST(FrontWorldTest, FaultsAreNoticed) {
  EXPECT_TRUE(IsNoticed(FrontFault::kKeepsUnaryCalls, "calls reached a service"));
  EXPECT_TRUE(IsNoticed(FrontFault::kStarvesPolite, "calls of a small message, and the ledger refused it 0"));
  EXPECT_TRUE(IsNoticed(FrontFault::kRefusesTooEarly, "the ledger refused"));
}

}  // namespace
}  // namespace saccade::server::simulation
