#include "server/simulation/fleet/balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "server/simulation/fleet/retry_budget.h"

namespace saccade::server::simulation {
namespace {

using testing::Optional;

std::vector<int> Numbers(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(BalancerTest, RoundRobinGivesEachReplicaTheSame) {
  Balancer balancer(Balancing::kRoundRobin, 0, 0, 1);
  balancer.SetReplicas(Numbers(7));
  std::map<int, int> picked;
  for (int i = 0; i < 70; ++i) ++picked[*balancer.Pick({})];
  ASSERT_EQ(picked.size(), 7u);
  for (const auto& [replica, times] : picked) EXPECT_EQ(times, 10) << replica;
}

TEST(BalancerTest, ClientsGoRoundInDifferentOrdersUnlessTheyAreToldNotTo) {
  const auto orders_of = [](bool same_order) {
    std::set<std::vector<int>> orders;
    for (int client = 0; client < 10; ++client) {
      Balancer balancer(Balancing::kRoundRobin, 0, client, client, same_order);
      balancer.SetReplicas(Numbers(20));
      orders.insert(balancer.replicas());
    }
    return orders.size();
  };
  EXPECT_EQ(orders_of(false), 10u);
  EXPECT_EQ(orders_of(true), 1u);
}

TEST(BalancerTest, LeavesOutReplicasThatRefuseForASecond) {
  Balancer balancer(Balancing::kRoundRobin, 0, 0, 1);
  balancer.SetReplicas(Numbers(2));
  balancer.Refused(0, kSecond);
  for (int i = 0; i < 4; ++i) EXPECT_THAT(balancer.Pick(kSecond), Optional(1));
  balancer.Refused(1, kSecond);
  EXPECT_EQ(balancer.Pick(kSecond), std::nullopt);
  EXPECT_NE(balancer.Pick(kSecond + Balancer::kBackoff), std::nullopt);
}

TEST(BalancerTest, LeastLoadedAvoidsReplicasThatReportMuchOrDoNotAnswer) {
  Balancer balancer(Balancing::kLeastLoaded, 0, 0, 1);
  balancer.SetReplicas(Numbers(3));
  // Replica 0 says that it has 50 requests; replica 1 never answers. Both random choices may be the same
  // replica, so that each of them is still picked at times.
  std::map<int, int> picked;
  for (int i = 0; i < 300; ++i) {
    const int replica = *balancer.Pick({});
    ++picked[replica];
    if (replica != 1) balancer.Closed(replica, replica == 0 ? 50 : 1);
  }
  EXPECT_LT(picked[0], 85);
  EXPECT_LT(picked[1], 85);
  EXPECT_GT(picked[2], 140);
}

TEST(BalancerTest, WeightedFollowsTheReportsAfterTheBlackout) {
  Balancer balancer(Balancing::kWeighted, 0, 0, 1);
  balancer.SetReplicas(Numbers(3));
  const auto picked_at = [&](Nanos now) {
    std::map<int, int> picked;
    for (int i = 0; i < 300; ++i) ++picked[*balancer.Pick(now)];
    return picked;
  };
  balancer.Report(0, 10, kSecond);
  balancer.Report(1, 40, kSecond);
  for (const auto& [replica, times] : picked_at(5 * kSecond)) EXPECT_EQ(times, 100) << replica;
  // Replica 2 has not reported and gets the mean, 25. An empty report changes nothing.
  balancer.Report(1, 0, 6 * kSecond);
  std::map<int, int> picked = picked_at(kSecond + Balancer::kBlackout);
  EXPECT_NEAR(picked[0], 40, 4);
  EXPECT_NEAR(picked[1], 160, 4);
  EXPECT_NEAR(picked[2], 100, 4);
  // Its first report begins a blackout of its own.
  balancer.Report(2, 1000, 12 * kSecond);
  EXPECT_NEAR(picked_at(20 * kSecond)[2], 100, 4);
  EXPECT_GT(picked_at(23 * kSecond)[2], 270);
}

TEST(BalancerTest, WeightedLeavesOutReplicasThatRefuse) {
  Balancer balancer(Balancing::kWeighted, 0, 0, 1);
  balancer.SetReplicas(Numbers(2));
  balancer.Report(0, 1, {});
  balancer.Report(1, 100, {});
  const Nanos now = Balancer::kBlackout + kSecond;
  balancer.Refused(1, now);
  for (int i = 0; i < 20; ++i) EXPECT_THAT(balancer.Pick(now), Optional(0));
  balancer.Refused(0, now);
  EXPECT_EQ(balancer.Pick(now), std::nullopt);
}

TEST(BalancerTest, ClientsHaveDifferentSubsetsThatCoverAllReplicas) {
  std::map<int, int> clients_of;
  for (int client = 0; client < 200; ++client) {
    Balancer balancer(Balancing::kSubset, 20, client, client);
    balancer.SetReplicas(Numbers(1000));
    ASSERT_EQ(balancer.replicas().size(), 20u);
    for (const int replica : balancer.replicas()) ++clients_of[replica];
  }
  // Four on average. Those that nobody has are the price of choosing at random: e^-4.
  EXPECT_GT(clients_of.size(), 960u);
}

TEST(BalancerTest, ASubsetChangesLittleWithTheReplicas) {
  Balancer balancer(Balancing::kSubset, 20, 3, 1);
  balancer.SetReplicas(Numbers(1000));
  const std::set<int> before(balancer.replicas().begin(), balancer.replicas().end());
  balancer.SetReplicas(Numbers(1010));
  int same = 0;
  for (const int replica : balancer.replicas()) same += before.contains(replica);
  EXPECT_GE(same, 17);
}

TEST(RetryBudgetTest, StopsAtHalfAndComesBackWithSuccesses) {
  RetryBudget budget(10, 0.1);
  for (int i = 0; i < 4; ++i) {
    budget.Failed();
    EXPECT_TRUE(budget.allows()) << i;
  }
  budget.Failed();
  EXPECT_FALSE(budget.allows());
  budget.Succeeded();
  EXPECT_TRUE(budget.allows());
}

TEST(RetryBudgetTest, ZeroMeansNone) {
  RetryBudget budget(0, 0);
  for (int i = 0; i < 100; ++i) budget.Failed();
  EXPECT_TRUE(budget.allows());
}

}  // namespace
}  // namespace saccade::server::simulation
