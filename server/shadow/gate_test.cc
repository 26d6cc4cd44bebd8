#include "server/shadow/gate.h"

#include <limits>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

GateMeasures Of(ShadowMeasure measure, double value) {
  GateMeasures measures = {.compared = 1000, .timed = 1000};
  measures.values.at(static_cast<size_t>(measure)) = value;
  return measures;
}

PromoteRule Only(PromoteRule::Condition condition) {
  PromoteRule rule;
  rule.conditions = {condition};
  rule.after = 1000;
  return rule;
}

bool Promotes(PromoteRule::Condition condition, double value) {
  return Decide(Only(condition), Of(condition.measure, value), absl::UnixEpoch()).promoted;
}

TEST(GateTest, ABoundIsExact) {
  const PromoteRule::Condition at_least = {.measure = ShadowMeasure::kAgreement, .bound = 0.995};
  EXPECT_TRUE(Promotes(at_least, 995.0 / 1000));
  EXPECT_FALSE(Promotes(at_least, 994.0 / 1000));
  const PromoteRule::Condition above = {
      .measure = ShadowMeasure::kAgreement, .or_equal = false, .bound = 0.995};
  EXPECT_FALSE(Promotes(above, 995.0 / 1000));
  EXPECT_TRUE(Promotes(above, 996.0 / 1000));
  const PromoteRule::Condition at_most = {.measure = ShadowMeasure::kP99, .bound = 1.1};
  EXPECT_TRUE(Promotes(at_most, 1.1));
  EXPECT_FALSE(Promotes(at_most, 1.1000001));
  const PromoteRule::Condition below = {.measure = ShadowMeasure::kP99, .or_equal = false, .bound = 1.1};
  EXPECT_FALSE(Promotes(below, 1.1));
  EXPECT_TRUE(Promotes(below, 1.09));
}

TEST(GateTest, WhatIsNotKnownDoesNotHold) {
  for (size_t measure = 0; measure < kShadowMeasures.size(); ++measure) {
    EXPECT_FALSE(Promotes({.measure = static_cast<ShadowMeasure>(measure), .bound = 1},
                          std::numeric_limits<double>::quiet_NaN()));
  }
  EXPECT_FALSE(
      Promotes({.measure = ShadowMeasure::kP99, .bound = 1e300}, std::numeric_limits<double>::infinity()));
}

TEST(GateTest, AllConditionsMustHoldAndThoseThatDoNotAreNamed) {
  PromoteRule rule = Only({.measure = ShadowMeasure::kAgreement, .bound = 0.995});
  rule.conditions.push_back({.measure = ShadowMeasure::kP50, .bound = 2});
  rule.conditions.push_back({.measure = ShadowMeasure::kP99, .or_equal = false, .bound = 1.1});
  GateMeasures measures = Of(ShadowMeasure::kAgreement, 0.9949999);
  measures.values.at(static_cast<size_t>(ShadowMeasure::kP99)) = 2.5;
  const GateDecision refused = Decide(rule, measures, absl::FromUnixSeconds(7));
  EXPECT_FALSE(refused.promoted);
  EXPECT_EQ(refused.reason, "agreement is 0.9949999, expected >= 0.995; p99 is 2.5, expected < 1.1");
  EXPECT_EQ(refused.at, absl::FromUnixSeconds(7));
  EXPECT_EQ(refused.measures.compared, 1000);
}

TEST(GateTest, TimesAreWaitedForWhereTheRuleNamesThem) {
  const PromoteRule timed = Only({.measure = ShadowMeasure::kP99, .bound = 1.1});
  EXPECT_FALSE(IsDue(timed, 999, 999));
  EXPECT_FALSE(IsDue(timed, 5000, 99));
  EXPECT_TRUE(IsDue(timed, 1000, 100));
  EXPECT_TRUE(IsDue(Only({.measure = ShadowMeasure::kEquality, .bound = 1}), 1000, 0));
}

}  // namespace
}  // namespace saccade::server
