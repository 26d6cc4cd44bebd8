// The statements of docs/fleet.md that a small fleet can show in a second or two each.
#include "server/simulation/fleet/scenarios.h"

#include <gtest/gtest.h>

namespace saccade::server::simulation {
namespace {

// Load 0.8, and twice that in the seconds from 10 to 20.
FleetSummary Burst(int replicas, bool same_order, double budget) {
  FleetOptions options = BasicFleet({.replicas = replicas}, 0.8, 47 * kSecond);
  options.same_order = same_order;
  options.retry.budget = budget;
  const double rate = options.rate;
  return FleetSummary({.name = "burst", .options = options, .script = [rate](Fleet& fleet) {
                         fleet.At(10 * kSecond, [&fleet, rate](Nanos) { fleet.SetRate(2 * rate); });
                         fleet.At(20 * kSecond, [&fleet, rate](Nanos) { fleet.SetRate(rate); });
                       }});
}

TEST(ScenariosTest, ClientsWithTheSameListCrowdAfterABurstOnlyWithoutABudget) {
  EXPECT_LT(Burst(500, true, 0).OfBound(25, 45), 0.95);
  EXPECT_GT(Burst(500, true, RetryOptions().budget).OfBound(25, 45), 0.99);
  EXPECT_GT(Burst(500, false, 0).OfBound(25, 45), 0.99);
}

TEST(ScenariosTest, WeightsFromLoadReportsSpareSlowReplicas) {
  double repeated[2] = {};
  for (const bool weighted : {false, true}) {
    FleetOptions options = BasicFleet({.replicas = 40}, 0.6, 62 * kSecond);
    options.balancing = weighted ? Balancing::kWeighted : Balancing::kRoundRobin;
    const FleetSummary summary({.name = "slow", .options = options, .script = [](Fleet& fleet) {
                                  fleet.At(kSecond, [&fleet](Nanos) {
                                    for (int i = 0; i < fleet.replicas(); i += 10)
                                      fleet.replica(i).set_slowdown(5);
                                  });
                                }});
    repeated[weighted] = summary.Attempts(40, 60) - 1;
  }
  EXPECT_GT(repeated[false], 0.02);
  EXPECT_LT(repeated[true], repeated[false] / 2);
}

TEST(ScenariosTest, KeepaliveFindsALostZoneSoonerThanKubernetes) {
  int recovered[2] = {};
  for (const bool keepalive : {false, true}) {
    FleetOptions options = BasicFleet({.replicas = 60}, 0.6, 80 * kSecond);
    if (!keepalive) options.keepalive = kNever;
    const FleetSummary summary({.name = "zone", .options = options, .script = [](Fleet& fleet) {
                                  fleet.At(10 * kSecond, [&fleet](Nanos) {
                                    for (int i = 0; i < fleet.replicas(); i += 3) fleet.Vanish(i);
                                  });
                                }});
    recovered[keepalive] = summary.RecoveredAfter(10, 0.95);
  }
  EXPECT_NEAR(recovered[false], 40, 4);
  EXPECT_NEAR(recovered[true], 15, 4);
}

}  // namespace
}  // namespace saccade::server::simulation
