#include "server/simulation/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/simulation/fleet/scenarios.h"

namespace saccade::server::simulation {
namespace {

struct Outcome {
  int64_t calls = 0;
  int64_t in_time = 0;
  int64_t attempts = 0;
  double bound = 0;
};

Outcome SumOf(const Fleet& fleet) {
  Outcome outcome;
  for (const Second& second : fleet.seconds()) {
    outcome.calls += second.calls;
    outcome.in_time += second.in_time;
    outcome.attempts += second.attempts;
    outcome.bound += std::min(second.bound, static_cast<double>(second.calls));
  }
  return outcome;
}

FleetOptions Forty(double load) { return BasicFleet({.replicas = 40}, load, 20 * kSecond); }

Outcome RunOf(const FleetOptions& options, const std::function<void(Fleet&)>& script = [](Fleet&) {}) {
  Fleet fleet(options);
  script(fleet);
  fleet.Run();
  EXPECT_EQ(fleet.ended_twice(), 0);
  const Outcome outcome = SumOf(fleet);
  EXPECT_EQ(fleet.ended(), outcome.calls) << "every call ends";
  return outcome;
}

TEST(FleetTest, AnswersWhatItCanAtHalfItsCapacity) {
  const Outcome outcome = RunOf(Forty(0.5));
  EXPECT_GT(outcome.calls, 7000);
  EXPECT_EQ(outcome.in_time, outcome.calls);
  EXPECT_EQ(outcome.attempts, outcome.calls);
}

TEST(FleetTest, NeverAnswersMoreThanTheBoundWhenItIsOverloaded) {
  const Outcome outcome = RunOf(Forty(2));
  // A tenth of slack: the bound has no jitter, and the first second begins with empty queues.
  EXPECT_LT(static_cast<double>(outcome.in_time), 1.1 * outcome.bound);
  EXPECT_GT(static_cast<double>(outcome.in_time), 0.8 * outcome.bound);
  EXPECT_GT(outcome.attempts, outcome.calls) << "rejections are repeated";
}

TEST(FleetTest, EqualSeedsGiveEqualRuns) {
  const Outcome one = RunOf(Forty(1.2));
  const Outcome again = RunOf(Forty(1.2));
  EXPECT_EQ(one.in_time, again.in_time);
  EXPECT_EQ(one.attempts, again.attempts);
  FleetOptions other = Forty(1.2);
  other.seed = 2;
  EXPECT_NE(RunOf(other).attempts, one.attempts);
}

TEST(FleetTest, ACrashIsCoveredByRetries) {
  const auto crash = [](Fleet& fleet) {
    fleet.At(5 * kSecond, [&fleet](Nanos) {
      for (int i = 0; i < 4; ++i) fleet.Crash(i);
    });
  };
  const Outcome with = RunOf(Forty(0.5), crash);
  EXPECT_GT(with.attempts, with.calls);
  EXPECT_GT(static_cast<double>(with.in_time), 0.9995 * static_cast<double>(with.calls));
  FleetOptions options = Forty(0.5);
  options.retry.attempts = 1;
  const Outcome without = RunOf(options, crash);
  EXPECT_LT(without.in_time, without.calls);
}

TEST(FleetTest, AReplicaThatVanishesTakesItsCallsAlong) {
  FleetOptions options = Forty(0.5);
  options.unnoticed = 6 * kSecond;
  const auto vanish = [](Fleet& fleet) {
    fleet.At(5 * kSecond, [&fleet](Nanos) {
      for (int i = 0; i < 10; ++i) fleet.Vanish(i);
    });
  };
  const Outcome outcome = RunOf(options, vanish);
  // A quarter of the calls of six of twenty seconds, and of the time until the clients know.
  const double lost = 1 - static_cast<double>(outcome.in_time) / static_cast<double>(outcome.calls);
  EXPECT_NEAR(lost, 0.25 * 7.0 / 20, 0.03);
  options.balancing = Balancing::kLeastLoaded;
  const Outcome balanced = RunOf(options, vanish);
  EXPECT_GT(balanced.in_time, outcome.in_time) << "a client sees that its requests there do not end";
}

TEST(FleetTest, AReplicaThatDrainsLosesNoCall) {
  FleetOptions options = Forty(0.5);
  options.lame_duck = 4 * kSecond;
  options.retry.attempts = 1;
  const Outcome outcome = RunOf(options, [](Fleet& fleet) {
    fleet.At(5 * kSecond, [&fleet](Nanos) {
      for (int i = 0; i < 4; ++i) fleet.Drain(i);
    });
  });
  EXPECT_EQ(outcome.in_time, outcome.calls);
  // Clients that learn of it later than the lame duck lasts are rejected.
  options.discovery = 12 * kSecond;
  const Outcome late =
      RunOf(options, [](Fleet& fleet) { fleet.At(5 * kSecond, [&fleet](Nanos) { fleet.Drain(0); }); });
  EXPECT_LT(late.in_time, late.calls);
}

TEST(FleetTest, ABudgetBoundsTheAttempts) {
  FleetOptions options = Forty(3);
  options.retry.at_once = true;
  options.retry.budget = 0;
  const Outcome without = RunOf(options);
  options.retry.budget = 10;
  const Outcome with = RunOf(options);
  EXPECT_GT(static_cast<double>(without.attempts), 2.0 * static_cast<double>(without.calls));
  EXPECT_LT(static_cast<double>(with.attempts), 1.5 * static_cast<double>(with.calls));
}

}  // namespace
}  // namespace saccade::server::simulation
