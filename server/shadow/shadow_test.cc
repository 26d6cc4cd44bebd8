#include "server/shadow/shadow.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/shadow/shadow_json.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kMiB = 1 << 20;

ComparedAnswer Best(int best) {
  models::Classification result{.logits = {0, 0}};
  result.logits[best] = 1;
  return {.results = {result}, .outputs = {}};
}

class ShadowTest : public ::testing::Test {
 protected:
  static int64_t Lost(const Shadow& shadow, ShadowLoss why) {
    return shadow.Report().dropped.at(static_cast<size_t>(why));
  }

  // A copy that was computed with this best class, where the version itself found 0.
  void Compare(Shadow& shadow, int best) {
    ASSERT_TRUE(shadow.Enter(10));
    shadow.EndAnswered({.id = "r",
                        .shadow = loaded_,
                        .picture = picture_,
                        .pass = {.batch_size = 1, .took = absl::Milliseconds(10)}},
                       Best(0), Best(best), pass_, absl::UnixEpoch());
    shadow.Leave(10);
  }

  Metrics metrics_{"test"};
  Shadow shadow_{{.version = 4, .share = 1}, metrics_.ForShadowOf("m", 3, 4)};
  std::shared_ptr<const ModelIdentity> loaded_ = std::make_shared<const ModelIdentity>();
  std::shared_ptr<const std::string> picture_ = std::make_shared<const std::string>("picture");
  PassTime pass_ = {.batch_size = 1, .took = absl::Milliseconds(10)};
};

// A rule for promotions after ten requests.
class ShadowGateTest : public ShadowTest {
 protected:
  ShadowRule Rule() const {
    PromoteRule promote;
    promote.conditions = {{.measure = ShadowMeasure::kAgreement, .bound = 0.9},
                          {.measure = ShadowMeasure::kP99, .bound = 1.5}};
    promote.after = 10;
    promote.text = "agreement >= 0.9 and p99 <= 1.5 after 10 requests";
    promote.replaces = 3;
    return {.version = 4, .share = 1, .promote = promote};
  }

  std::string State(const Shadow& shadow) const {
    return Json::parse(ToJson(shadow.Report(), "m", 3))["promote"]["state"];
  }

  int reported_ = 0;
  Shadow gated_{Rule(), metrics_.ForShadowOf("m", 3, 4, /*gated=*/true), [this] { ++reported_; }};
};

TEST_F(ShadowTest, ChoosesItsShare) {
  Shadow tenth({.version = 4, .share = 0.1}, nullptr);
  int chosen = 0;
  for (int i = 0; i < 10'000; ++i) chosen += tenth.Wants(/*waiting=*/false) ? 1 : 0;
  // Ten standard deviations.
  EXPECT_GT(chosen, 700);
  EXPECT_LT(chosen, 1300);
  EXPECT_TRUE(shadow_.Wants(false));
}

TEST_F(ShadowTest, ARequestIsDroppedWhereOthersWait) {
  EXPECT_FALSE(shadow_.Wants(/*waiting=*/true));
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kBusy), 1);
  EXPECT_FALSE(shadow_.Wants(/*waiting=*/true, /*requests=*/4));
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kBusy), 5);
  EXPECT_EQ(shadow_.Report().compared, 0);
}

TEST_F(ShadowTest, CopiesAreBoundedInNumberAndBytes) {
  for (int i = 0; i < Shadow::kMaxCopies; ++i) EXPECT_TRUE(shadow_.Enter(1));
  EXPECT_FALSE(shadow_.Enter(1));
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kBehind), 1);
  shadow_.Leave(1);
  EXPECT_TRUE(shadow_.Enter(1)) << "one has ended";
}

TEST_F(ShadowTest, LargeCopiesAreDropped) {
  EXPECT_FALSE(shadow_.Enter(Shadow::kMaxBytes + 1));
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kTooLarge), 1);
  EXPECT_TRUE(shadow_.Enter(Shadow::kMaxBytes));
  EXPECT_FALSE(shadow_.Enter(kMiB));
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kBehind), 1);
}

TEST_F(ShadowTest, CountsWhatAgrees) {
  for (int i = 0; i < 3; ++i) Compare(shadow_, 0);
  Compare(shadow_, 1);
  const ShadowReport report = shadow_.Report();
  EXPECT_EQ(report.compared, 4);
  EXPECT_EQ(report.agreed, 3);
  EXPECT_EQ(report.equal, 3);
  EXPECT_EQ(report.in_flight, 0);
  EXPECT_EQ(report.in_flight_bytes, 0);
  ASSERT_TRUE(report.last_disagreement);
  EXPECT_EQ(report.last_disagreement->request, "r");
  EXPECT_GT(report.last_disagreement->difference.value_or(0), 0.4);
  const std::string text = metrics_.Exposition();
  EXPECT_THAT(text, HasSubstr("saccade_shadow_compared_total{model=\"m\",shadow=\"4\",version=\"3\"} 4"));
  EXPECT_THAT(text, HasSubstr("saccade_shadow_agreed_total{model=\"m\",shadow=\"4\",version=\"3\"} 3"));
  EXPECT_THAT(text, HasSubstr("saccade_shadow_difference_count{model=\"m\",shadow=\"4\",version=\"3\"} 4"));
}

TEST_F(ShadowTest, ASampledRequestIsTheExemplarOfItsDifference) {
  shadow_.EndAnswered({.span = {.trace = {1, 2}, .id = 3}, .shadow = loaded_}, Best(0), Best(1), {},
                      absl::UnixEpoch());
  EXPECT_THAT(metrics_.Exposition(ExpositionFormat::kOpenMetrics),
              HasSubstr("# {trace_id=\"00000000000000010000000000000002\""));
}

TEST_F(ShadowTest, AFailureIsNoAgreementButAFullQueueSaysNothing) {
  shadow_.EndFailed({.shadow = loaded_}, absl::InternalError("broken"), absl::UnixEpoch());
  shadow_.EndFailed({.shadow = loaded_}, absl::ResourceExhaustedError("full"), absl::UnixEpoch());
  const ShadowReport report = shadow_.Report();
  EXPECT_EQ(report.compared, 1);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.agreed, 0);
  EXPECT_EQ(Lost(shadow_, ShadowLoss::kUnavailable), 1);
  ASSERT_TRUE(report.last_disagreement);
  EXPECT_EQ(report.last_disagreement->error, "broken");
  EXPECT_EQ(report.in_flight, 0);
}

TEST_F(ShadowTest, AnotherLoadBeginsAnotherReport) {
  Compare(shadow_, 1);
  ASSERT_TRUE(shadow_.Enter(7));
  loaded_ = std::make_shared<const ModelIdentity>();
  Compare(shadow_, 0);
  const ShadowReport report = shadow_.Report();
  EXPECT_EQ(report.compared, 1);
  EXPECT_EQ(report.agreed, 1);
  EXPECT_FALSE(report.last_disagreement);
  EXPECT_EQ(report.in_flight, 1);
  EXPECT_EQ(report.in_flight_bytes, 7);
}

TEST_F(ShadowTest, ItsJsonHasWhatIsKnown) {
  const Json before = Json::parse(ToJson(shadow_.Report(), "m", 3));
  EXPECT_EQ(before["shadow"], 4);
  EXPECT_EQ(before["compared"], 0);
  EXPECT_FALSE(before.contains("agreement")) << "nothing was compared";
  EXPECT_FALSE(before.contains("last_disagreement"));
  Compare(shadow_, 0);
  Compare(shadow_, 1);
  const Json after = Json::parse(ToJson(shadow_.Report(), "m", 3));
  EXPECT_EQ(after["agreement"], 0.5);
  EXPECT_EQ(after["task"], "classification");
  EXPECT_EQ(after["dropped"]["busy"], 0);
  EXPECT_EQ(after["last_disagreement"]["request"], "r");
  EXPECT_FALSE(after["last_disagreement"].contains("trace"));
}

TEST_F(ShadowGateTest, IsDecidedOnceAfterSoManyRequests) {
  for (int i = 0; i < 9; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "measuring");
  EXPECT_FALSE(gated_.TakeDecision());
  Compare(gated_, 0);
  EXPECT_EQ(reported_, 1);
  EXPECT_EQ(State(gated_), "promoted");
  const auto decision = gated_.TakeDecision();
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->promoted);
  EXPECT_EQ(decision->reason, "agreement is 1; p99 is 1");
  EXPECT_FALSE(gated_.TakeDecision()) << "it was taken";
  EXPECT_FALSE(gated_.Wants(false)) << "the shadow version answers itself from now on";
  // Copies that were in flight change nothing.
  Compare(gated_, 1);
  EXPECT_EQ(reported_, 1);
  EXPECT_THAT(
      metrics_.Exposition(),
      HasSubstr("saccade_shadow_promotion{model=\"m\",shadow=\"4\",state=\"promoted\",version=\"3\"} 1"));
}

TEST_F(ShadowGateTest, ARefusalSaysWhyAndKeepsThePictures) {
  for (int i = 0; i < 12; ++i) Compare(gated_, i % 2);
  const ShadowReport report = gated_.Report();
  ASSERT_TRUE(report.decision);
  EXPECT_FALSE(report.decision->promoted);
  EXPECT_EQ(report.decision->reason, "agreement is 0.5, expected >= 0.9");
  EXPECT_EQ(report.decision->measures.compared, 10);
  EXPECT_TRUE(gated_.Wants(false)) << "it is compared further";
  EXPECT_EQ(reported_, 1);
  ASSERT_EQ(report.differing.size(), 6);
  EXPECT_EQ(*report.differing[0].picture, "picture");
  EXPECT_EQ(report.differing[0].number, 1);
  const Json json = Json::parse(ToJson(report, "m", 3));
  EXPECT_EQ(json["promote"]["state"], "refused");
  EXPECT_EQ(json["promote"]["measures"]["agreement"], 0.5);
  EXPECT_EQ(json["differing"][0]["picture_bytes"], 7);
  EXPECT_THAT(
      metrics_.Exposition(),
      HasSubstr("saccade_shadow_promotion{model=\"m\",shadow=\"4\",state=\"refused\",version=\"3\"} 1"));
}

TEST_F(ShadowGateTest, ASlowerVersionIsRefused) {
  pass_.took = absl::Milliseconds(16);
  for (int i = 0; i < 10; ++i) Compare(gated_, 0);
  ASSERT_TRUE(gated_.Report().decision);
  EXPECT_EQ(gated_.Report().decision->reason, "p99 is 1.6, expected <= 1.5");
}

// Copies of several passes that are computed in one cannot be compared with them.
TEST_F(ShadowGateTest, CopiesThatAreTimedAreThoseOfOnePassAtATime) {
  EXPECT_TRUE(gated_.copies_passes());
  EXPECT_TRUE(gated_.Enter(1, /*requests=*/7));
  EXPECT_EQ(gated_.Report().in_flight, 7);
  EXPECT_FALSE(gated_.Enter(1, /*requests=*/3));
  EXPECT_EQ(Lost(gated_, ShadowLoss::kBehind), 3);
  gated_.Leave(1, /*requests=*/7);
  EXPECT_TRUE(gated_.Enter(1));
  ShadowRule rule = Rule();
  rule.promote->conditions = {{.measure = ShadowMeasure::kAgreement, .bound = 0.9}};
  Shadow untimed(rule, nullptr);
  for (int64_t i = 0; i < Shadow::kMaxCopies; ++i) EXPECT_TRUE(untimed.Enter(1));
  EXPECT_FALSE(untimed.Enter(1));
}

TEST_F(ShadowGateTest, WaitsUntilEnoughWasTimed) {
  pass_.batch_size = 2;
  for (int i = 0; i < 50; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "measuring") << "batches of different sizes are not timed";
  EXPECT_EQ(Json::parse(ToJson(gated_.Report(), "m", 3))["promote"]["reason"],
            "compared 50 of 10, timed 0 of 10 passes");
  pass_.batch_size = 1;
  for (int i = 0; i < 10; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "promoted");
}

TEST_F(ShadowGateTest, ShowsWhatTheRuleHasComeTo) {
  EXPECT_FALSE(shadow_.Promotion()) << "it has no rule";
  const auto before = gated_.Promotion();
  ASSERT_TRUE(before);
  EXPECT_EQ(before->rule, Rule().promote->text);
  EXPECT_EQ(before->replaces, 3);
  EXPECT_EQ(before->shadow, 4);
  EXPECT_EQ(before->reason, "compared 0 of 10, timed 0 of 10 passes");
  for (int i = 0; i < 9; ++i) Compare(gated_, 1);
  EXPECT_FALSE(gated_.Promotion()->promoted);
  EXPECT_EQ(gated_.Promotion()->reason, "compared 9 of 10, timed 9 of 10 passes");
  Compare(gated_, 1);
  EXPECT_EQ(gated_.Promotion()->promoted, false);
  EXPECT_EQ(gated_.Promotion()->reason, "agreement is 0, expected >= 0.9");
  loaded_ = std::make_shared<const ModelIdentity>();
  Compare(gated_, 0);
  EXPECT_EQ(gated_.Promotion()->reason, "compared 1 of 10, timed 1 of 10 passes") << "another load";
  gated_.Adopt(GateDecision{.promoted = false, .reason = "earlier"}, loaded_);
  EXPECT_EQ(gated_.Promotion()->reason, "earlier");
}

TEST_F(ShadowGateTest, AnErrorIsNoAgreementAndCannotBeMeasured) {
  ShadowRule rule = Rule();
  rule.promote->conditions = {{.measure = ShadowMeasure::kLargestDifference, .bound = 1000}};
  Shadow gated(rule, nullptr);
  for (int i = 0; i < 9; ++i) Compare(gated, 0);
  gated.EndFailed({.shadow = loaded_}, absl::InternalError("broken"), absl::UnixEpoch());
  ASSERT_TRUE(gated.Report().decision);
  EXPECT_EQ(gated.Report().decision->reason, "largest_difference is inf, expected <= 1000");
  EXPECT_FALSE(
      Json::parse(ToJson(gated.Report(), "m", 3))["promote"]["measures"].contains("largest_difference"));
}

TEST_F(ShadowGateTest, AnotherLoadIsTriedAnew) {
  for (int i = 0; i < 10; ++i) Compare(gated_, 1);
  EXPECT_EQ(State(gated_), "refused");
  loaded_ = std::make_shared<const ModelIdentity>();
  for (int i = 0; i < 9; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "measuring");
  EXPECT_TRUE(gated_.Report().differing.empty());
  EXPECT_FALSE(gated_.TakeDecision()) << "it was about the earlier load";
  Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "promoted");
}

TEST_F(ShadowGateTest, AnEarlierRefusalOfTheSameFilesHolds) {
  gated_.Adopt(GateDecision{.promoted = false, .reason = "earlier"}, loaded_);
  for (int i = 0; i < 20; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "refused");
  EXPECT_EQ(gated_.Report().decision->reason, "earlier");
  EXPECT_FALSE(gated_.TakeDecision());
  EXPECT_EQ(reported_, 0);
  // The file was replaced, and then loaded.
  loaded_ = std::make_shared<const ModelIdentity>();
  gated_.Adopt(std::nullopt, loaded_);
  for (int i = 0; i < 10; ++i) Compare(gated_, 0);
  EXPECT_EQ(State(gated_), "promoted");
}

TEST_F(ShadowGateTest, ALateCopyOfAnEarlierLoadIsNotCompared) {
  for (int i = 0; i < 9; ++i) Compare(gated_, 0);
  const auto load = std::make_shared<const ModelIdentity>();
  gated_.Adopt(GateDecision{.promoted = false, .reason = "earlier"}, load);
  Compare(gated_, 0);
  gated_.EndFailed({.shadow = loaded_}, absl::InternalError("broken"), absl::UnixEpoch());
  EXPECT_EQ(gated_.Promotion()->reason, "earlier");
  EXPECT_EQ(gated_.Report().compared, 0);
  EXPECT_EQ(Lost(gated_, ShadowLoss::kUnavailable), 2);
  const std::string text = metrics_.Exposition();
  EXPECT_THAT(text, HasSubstr("saccade_shadow_compared_total{model=\"m\",shadow=\"4\",version=\"3\"} 9"));
  EXPECT_THAT(text, HasSubstr("saccade_shadow_failed_total{model=\"m\",shadow=\"4\",version=\"3\"} 0"));
  loaded_ = load;
  Compare(gated_, 0);
  EXPECT_EQ(gated_.Report().compared, 1);
  EXPECT_EQ(State(gated_), "refused");
}

TEST_F(ShadowGateTest, AfterAPromotionAnotherLoadIsTriedAnew) {
  for (int i = 0; i < 10; ++i) Compare(gated_, 0);
  ASSERT_TRUE(gated_.TakeDecision());
  loaded_ = std::make_shared<const ModelIdentity>();
  gated_.Adopt(std::nullopt, loaded_);
  EXPECT_EQ(State(gated_), "measuring");
  EXPECT_EQ(gated_.Promotion()->reason, "compared 0 of 10, timed 0 of 10 passes");
  EXPECT_TRUE(gated_.Wants(false));
  EXPECT_THAT(
      metrics_.Exposition(),
      HasSubstr("saccade_shadow_promotion{model=\"m\",shadow=\"4\",state=\"measuring\",version=\"3\"} 1"));
  for (int i = 0; i < 10; ++i) Compare(gated_, 1);
  EXPECT_EQ(State(gated_), "refused");
  EXPECT_EQ(reported_, 2);
}

// The model's files were read again for another reason, such as a new version.
TEST_F(ShadowGateTest, WhatWasComparedWithTheSameLoadStays) {
  for (int i = 0; i < 9; ++i) Compare(gated_, 0);
  gated_.Adopt(std::nullopt, loaded_);
  EXPECT_EQ(gated_.Report().compared, 9);
  Compare(gated_, 0);
  gated_.Adopt(std::nullopt, loaded_);
  EXPECT_EQ(State(gated_), "promoted");
  EXPECT_FALSE(gated_.Wants(false));
  EXPECT_TRUE(gated_.TakeDecision()) << "it was not taken yet";
}

TEST_F(ShadowGateTest, WithoutARuleNothingIsKeptOrDecided) {
  EXPECT_FALSE(shadow_.wants_pictures());
  for (int i = 0; i < 20; ++i) Compare(shadow_, 1);
  EXPECT_FALSE(shadow_.Report().decision);
  EXPECT_TRUE(shadow_.Report().differing.empty());
  EXPECT_FALSE(Json::parse(ToJson(shadow_.Report(), "m", 3)).contains("promote"));
}

TEST(DifferingTest, KeepsThoseThatDifferMost) {
  Differing differing;
  for (int i = 0; i < 100; ++i) differing.Add({.difference = (i * 37 % 100) / 100.0});
  differing.Add({.error = "failed"});
  ASSERT_EQ(differing.worst().size(), Differing::kMax);
  EXPECT_EQ(differing.worst()[0].error, "failed");
  EXPECT_EQ(differing.worst()[0].number, 101);
  for (size_t i = 1; i < Differing::kMax; ++i)
    EXPECT_EQ(differing.worst()[i].difference, (100 - static_cast<int>(i)) / 100.0);
}

TEST(PassTimesTest, ComparesQuantilesOfBoth) {
  PassTimes times;
  for (int i = 1; i <= 100; ++i)
    times.Add({1, 3, absl::Milliseconds(i)}, {1, 1, absl::Milliseconds(i <= 98 ? i : 10 * i)});
  EXPECT_DOUBLE_EQ(times.RatioAt(0.5), 1);
  EXPECT_DOUBLE_EQ(times.RatioAt(0.98), 1);
  EXPECT_DOUBLE_EQ(times.RatioAt(0.99), 10);
  times.Add({0, 1, absl::Seconds(1)}, {0, 1, absl::Seconds(9)});
  EXPECT_EQ(times.size(), 100) << "it was not timed";
  EXPECT_EQ(times.requests(), 300);
}

TEST(PassTimesTest, AreBounded) {
  PassTimes times;
  for (size_t i = 0; i < PassTimes::kMaxPairs + 10; ++i) times.Add({.batch_size = 1}, {.batch_size = 1});
  EXPECT_EQ(times.size(), PassTimes::kMaxPairs);
  EXPECT_EQ(times.RatioAt(0.99), 1) << "what the clock does not see is as fast";
}

}  // namespace
}  // namespace saccade::server
