#include "models/networks/sanet/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/error.h"
#include "models/networks/sanet/layers.h"
#include "models/networks/sanet/parameters.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Counts CountWith(const Options& options) { return CountSanet(MakeSanetPlan(ParseSanetOptions(options))); }

TEST(SanetCounts, MatchThePaper) {
  EXPECT_EQ(CountWith({}).Parameters(), 3'449'408);                        // table 8, SANet
  EXPECT_EQ(CountWith({{"similarity", "ones"}}).Parameters(), 3'448'448);  // table 8, SANet w/o params
}

// The paper prints 288 M; the difference is unresolved. Attention's part is 4 N c for each operator and N c^2
// for each value transform.
TEST(SanetCounts, MultiplyAddsByThePapersRules) {
  const Counts counts = CountWith({});
  EXPECT_EQ(counts.Madds(), 289'856'288);
  EXPECT_EQ(counts.AttentionMadds(), 11'935'616);
  EXPECT_EQ(counts.AttentionParameters(), 112'640 + 960);
}

TEST(SanetCounts, MatchTheParametersThatAreLoaded) {
  for (const Options& options : {Options{}, Options{{"attention", "none"}}, Options{{"width", "0.25"}}}) {
    const SanetPlan plan = MakeSanetPlan(ParseSanetOptions(options));
    int64_t parameters = 0;
    for (const TensorSpec& spec : SanetParameters(plan)) {
      int64_t size = 1;
      for (const int64_t side : spec.shape) size *= side;
      if (spec.name.find("running_") == std::string::npos) parameters += size;
    }
    EXPECT_EQ(CountSanet(plan).AllParameters(), parameters);
  }
}

TEST(SanetPlan, UnfoldsTheTable) {
  const SanetPlan plan = MakeSanetPlan({});
  ASSERT_EQ(plan.blocks.size(), 17U);
  EXPECT_EQ(plan.blocks[0].expanded(), 0);
  EXPECT_EQ(plan.blocks[5].module, Module::kAttention);
  EXPECT_EQ(plan.blocks[5].size, 28);
  EXPECT_EQ(plan.blocks[5].filtered(), 5 * 32);
  EXPECT_TRUE(plan.blocks[5].skip());
  EXPECT_EQ(plan.blocks[6].filtered(), 6 * 32);
  EXPECT_FALSE(plan.blocks[6].skip());
  EXPECT_EQ(plan.blocks[16].name, "blocks.16");
  EXPECT_EQ(plan.blocks[16].outputs, 320);
  EXPECT_EQ(plan.blocks[16].size, 7);
}

TEST(SanetOptions, AreRead) {
  const SanetOptions options = ParseSanetOptions({{"attention", "none"},
                                                  {"global_term", "false"},
                                                  {"classes", "10"},
                                                  {"width", "0.5"},
                                                  {"input_size", "96"}});
  EXPECT_FALSE(options.attention);
  EXPECT_FALSE(options.global_term);
  EXPECT_TRUE(options.learned);
  EXPECT_EQ(options.classes, 10);
  EXPECT_EQ(options.width, 0.5);
  EXPECT_EQ(options.input_size, 96);
  EXPECT_EQ(AsText(options).at("width"), "0.5");
}

// The error's text, or "" if there was none.
std::string Error(const Options& options) {
  try {
    ParseSanetOptions(options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(SanetOptions, RefuseUnknownNamesAndListTheLegalOnes) {
  EXPECT_THAT(Error({{"clases", "10"}}),
              AllOf(HasSubstr("'clases'"), HasSubstr("\n  classes: a whole number from 1 to 100000"),
                    HasSubstr("\n  attention: sao or none (default sao)")));
}

TEST(SanetOptions, RefuseBadValues) {
  EXPECT_THAT(Error({{"attention", "softmax"}}), AllOf(HasSubstr("'softmax'"), HasSubstr("sao or none")));
  for (const char* value : {"", "0", "-1", "10 ", "1e3", "100001", "99999999999999999999"}) {
    EXPECT_THAT(Error({{"classes", value}}), HasSubstr("option classes")) << value;
  }
  for (const char* value : {"", "0", "nan", "inf", "5", "0.25x", "-1"}) {
    EXPECT_THAT(Error({{"width", value}}), HasSubstr("option width")) << value;
  }
}

TEST(Scaled, RoundsToTheNearestMultipleOfEight) {
  EXPECT_EQ(Scaled(32, 1), 32);
  EXPECT_EQ(Scaled(24, 0.5), 16);  // 12 lies halfway: upwards
  EXPECT_EQ(Scaled(16, 0.25), 8);
  EXPECT_EQ(Scaled(96, 0.35), 32);
}

}  // namespace
}  // namespace saccade::models
