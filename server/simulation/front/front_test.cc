// Plays 300 seeds, with AddressSanitizer 60; SACCADE_FRONT_SEEDS sets another number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "server/simulation/front/front_world.h"
#include "server/simulation/front/http1_checks.h"

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

// Whatever a client of HTTP/1.1 can do and see has occurred.
void ExpectEachOutcome(const Http1Counts& counts) {
  for (const int clients : counts.clients) EXPECT_GT(clients, 3);
  EXPECT_GT(counts.clients_of(Http1Behaviour::kPolite), 50);
  EXPECT_GT(counts.requests, 300);
  EXPECT_EQ(counts.requests, counts.answered + counts.refused + counts.failed + counts.unprocessed);
  EXPECT_GT(counts.answered, 200);
  EXPECT_GT(counts.refused, 10);
  EXPECT_GT(counts.failed, 10);
  EXPECT_GT(counts.unprocessed, 5);
  EXPECT_GT(counts.pipelined, 50);
  EXPECT_GT(counts.chunked, 50);
  EXPECT_GT(counts.continued, 20);
  EXPECT_GT(counts.heads, 20);
  EXPECT_GT(counts.streams, 20);
  EXPECT_GT(counts.after_drain, 3);
  EXPECT_GT(counts.idle_ends, 20);
  EXPECT_GT(counts.reconnects, 10);
  EXPECT_GT(counts.timed_out, 10);
  EXPECT_GT(counts.malformed, 3);
  EXPECT_GT(counts.small, 100);
  EXPECT_LE(counts.small_refused, counts.small / 20);
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
    all.http1.Add(result.http1);
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
  ExpectEachOutcome(all.http1);
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

TEST(FrontWorldTest, FaultsOfHttp1AreNoticed) {
  EXPECT_TRUE(IsNoticed(FrontFault::kKeepsHttpBodies, "after the last client has gone"));
  EXPECT_TRUE(IsNoticed(FrontFault::kMixesHttpAnswers, "was answered with something else: status 200"));
  EXPECT_TRUE(IsNoticed(FrontFault::kForgetsHttp1InDrain, "during the drain without Connection: close"));
}

}  // namespace
}  // namespace saccade::server::simulation
