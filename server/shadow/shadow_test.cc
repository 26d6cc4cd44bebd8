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
    shadow.EndAnswered({.id = "r", .shadow = loaded_}, Best(0), Best(best), absl::UnixEpoch());
    shadow.Leave(10);
  }

  Metrics metrics_{"test"};
  Shadow shadow_{{.version = 4, .share = 1}, metrics_.ForShadowOf("m", 3, 4)};
  std::shared_ptr<const ModelIdentity> loaded_ = std::make_shared<const ModelIdentity>();
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
  shadow_.EndAnswered({.span = {.trace = {1, 2}, .id = 3}, .shadow = loaded_}, Best(0), Best(1),
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

}  // namespace
}  // namespace saccade::server
