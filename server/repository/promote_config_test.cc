#include "server/repository/promote_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto rule = ReadPromoteRule(text);
  return rule.ok() ? "" : std::string(rule.status().message());
}

TEST(PromoteConfigTest, ReadsConditionsAndTheNumberOfRequests) {
  const auto rule =
      ReadPromoteRule("  agreement >= 0.995 and p99<1.1 and\tlargest_difference <= 0 after 1000 requests ");
  ASSERT_TRUE(rule.ok()) << rule.status();
  ASSERT_EQ(rule->conditions.size(), 3);
  EXPECT_EQ(rule->conditions[0].measure, ShadowMeasure::kAgreement);
  EXPECT_TRUE(rule->conditions[0].or_equal);
  EXPECT_EQ(rule->conditions[0].bound, 0.995);
  EXPECT_EQ(rule->conditions[1].measure, ShadowMeasure::kP99);
  EXPECT_FALSE(rule->conditions[1].or_equal);
  EXPECT_EQ(rule->conditions[1].bound, 1.1);
  EXPECT_EQ(rule->conditions[2].measure, ShadowMeasure::kLargestDifference);
  EXPECT_EQ(rule->conditions[2].bound, 0);
  EXPECT_EQ(rule->after, 1000);
  EXPECT_EQ(rule->text, "agreement >= 0.995 and p99<1.1 and\tlargest_difference <= 0 after 1000 requests");
}

TEST(PromoteConfigTest, EachMeasureHasItsName) {
  for (size_t measure = 0; measure < kShadowMeasures.size(); ++measure) {
    const auto& [name, high] = kShadowMeasures.at(measure);
    const auto rule = ReadPromoteRule(absl::StrCat(name, high ? " > " : " < ", "1 after 1 requests"));
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_EQ(rule->conditions[0].measure, static_cast<ShadowMeasure>(measure)) << name;
    EXPECT_EQ(OperatorOf(rule->conditions[0]), high ? ">" : "<");
  }
}

TEST(PromoteConfigTest, AnErrorNamesItsPosition) {
  EXPECT_EQ(
      ErrorOf(""),
      "at character 1 expected one of agreement, equality, mean_difference, largest_difference, p50, p99, "
      "found the end");
  EXPECT_THAT(ErrorOf("agrement >= 1 after 5 requests"),
              HasSubstr("at character 1 expected one of agreement"));
  EXPECT_THAT(
      ErrorOf("agreement => 1 after 5 requests"),
      HasSubstr("at character 11 expected '>=' or '>', because a higher agreement is better, found '=>'"));
  EXPECT_THAT(ErrorOf("agreement <= 1 after 5 requests"), HasSubstr("at character 11 expected '>=' or '>'"));
  EXPECT_THAT(ErrorOf("p99 >= 1 after 5 requests"), HasSubstr("at character 5 expected '<=' or '<'"));
  EXPECT_THAT(ErrorOf("p99 <= 1,1 after 5 requests"),
              HasSubstr("at character 9 expected 'and' or 'after', found ','"));
  EXPECT_THAT(ErrorOf("p99 <= 1 or p50 <= 1 after 5 requests"),
              HasSubstr("at character 10 expected 'and' or 'after'"));
  EXPECT_THAT(ErrorOf("p99 <= 1 and after 5 requests"), HasSubstr("at character 14 expected one of"));
  EXPECT_THAT(ErrorOf("p99 <= 1"), HasSubstr("at character 9 expected 'and' or 'after', found the end"));
  EXPECT_THAT(ErrorOf("p99 <= 1 after 5"), HasSubstr("at character 17 expected 'requests', found the end"));
  EXPECT_THAT(ErrorOf("p99 <= 1 after 5 requests or so"),
              HasSubstr("at character 27 expected the end, found 'or'"));
}

TEST(PromoteConfigTest, NumbersAreFiniteAndBounded) {
  for (const char* bound : {"-1", "nan", "inf", "1e3", "0x1", "1.1.1", ".", "+1", "ten", "\x01"})
    EXPECT_THAT(ErrorOf(absl::StrCat("p99 <= ", bound, " after 5 requests")),
                HasSubstr("at character 8 expected a number"))
        << bound;
  EXPECT_THAT(ErrorOf(absl::StrCat("p99 <= ", std::string(400, '9'), " after 5 requests")),
              HasSubstr("a number"));
  for (const char* count : {"0", "-5", "1.5", "1000001", "99999999999999999999", "many", ""})
    EXPECT_THAT(ErrorOf(absl::StrCat("p99 <= 1 after ", count, " requests")),
                HasSubstr("expected a whole number of requests from 1 to 1000000"))
        << count;
  EXPECT_EQ(ErrorOf("p99 <= 1 after 1000000 requests"), "");
}

TEST(PromoteConfigTest, ARuleHasAtMostSixteenConditions) {
  std::string text = "p99 <= 1";
  for (int i = 1; i < 16; ++i) text += " and p99 <= 1";
  EXPECT_EQ(ErrorOf(text + " after 1 requests"), "");
  EXPECT_THAT(ErrorOf(text + " and p99 <= 1 after 1 requests"), HasSubstr("at most 16 conditions"));
}

}  // namespace
}  // namespace saccade::server
