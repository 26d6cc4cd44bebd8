#include "server/repository/crop_rules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/config_file.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kStep[] =
    R"(step { model_name: "finder" input_map { key: "image" value: "image" } output_map { key: "boxes" value: "boxes" } })";
constexpr char kOtherStep[] =
    R"(step { model_name: "other" input_map { key: "image" value: "image" } output_map { key: "x" value: "x" } })";

std::string Parameter(const std::string& key, const std::string& value) {
  return absl::StrCat("parameters { key: \"", key, "\" value { string_value: \"", value, "\" } }\n");
}

absl::StatusOr<ConfigFile> Parse(const std::string& more, const std::string& steps = kStep) {
  return ParseConfig(absl::StrCat("platform: \"ensemble\"\nmax_batch_size: 1\n"
                                  "input [ { name: \"image\" data_type: TYPE_STRING dims: [1] } ]\n"
                                  "output [ { name: \"boxes\" data_type: TYPE_FP32 dims: [-1, 4] } ]\n"
                                  "ensemble_scheduling { ",
                                  steps, " }\n", more),
                     "m/config.pbtxt", "m");
}

TEST(CropRulesTest, TheModelsOfCropsAreLoadedWithTheEnsemble) {
  const auto config = Parse(Parameter("crops", "names,poses"));
  ASSERT_TRUE(config.ok()) << config.status();
  const auto& steps = config->settings.ensemble;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].model, "finder");
  EXPECT_EQ(steps[1].model, "names");
  EXPECT_EQ(steps[2].model, "poses");
  EXPECT_THAT(steps[2].outputs, IsEmpty());
  const auto rules = CropRulesOf(config->settings);
  ASSERT_TRUE(rules.ok() && *rules);
  EXPECT_THAT((*rules)->models, ElementsAre("names", "poses"));
  EXPECT_EQ((*rules)->padding, 0);
  EXPECT_EQ((*rules)->min_score, 0);
  EXPECT_EQ((*rules)->max, 20);
  EXPECT_THAT((*rules)->classes, IsEmpty());
}

TEST(CropRulesTest, EveryRuleArrives) {
  const auto config = Parse(absl::StrCat(Parameter("crops", "names"), Parameter("crop_padding", "0.25"),
                                         Parameter("crop_min_score", "0.5"), Parameter("crop_max", "100"),
                                         Parameter("crop_classes", "3,0")));
  ASSERT_TRUE(config.ok()) << config.status();
  const auto rules = CropRulesOf(config->settings);
  ASSERT_TRUE(rules.ok() && *rules);
  EXPECT_EQ((*rules)->padding, 0.25);
  EXPECT_EQ((*rules)->min_score, 0.5);
  EXPECT_EQ((*rules)->max, 100);
  EXPECT_THAT((*rules)->classes, ElementsAre(3, 0));
}

TEST(CropRulesTest, OtherEnsemblesHaveNone) {
  const auto config = Parse("");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->settings.ensemble.size(), 1u);
  const auto rules = CropRulesOf(config->settings);
  ASSERT_TRUE(rules.ok());
  EXPECT_FALSE(rules->has_value());
}

TEST(CropRulesTest, MistakesNameTheParameter) {
  const std::string crops = Parameter("crops", "names");
  const struct {
    std::string parameters;
    std::string error;
  } kCases[] = {
      {Parameter("crops", ""), "parameters['crops']"},
      {Parameter("crops", "a,,b"), "parameters['crops']"},
      {Parameter("crops", "../a"), "parameters['crops']"},
      {Parameter("crops", "a,b,a"), "names 'a' twice, expected each model once"},
      {Parameter("crops", "a,b,c,d,e"), "names 5 models, expected 1 to 4"},
      {Parameter("crops", "m"), "names the ensemble itself"},
      {Parameter("crops", "finder"), "names the detector 'finder'"},
      {crops + Parameter("crop_padding", "-0.1"), "is '-0.1', expected a fraction of the box's sides"},
      {crops + Parameter("crop_padding", "nan"), "is 'nan', expected a fraction"},
      {crops + Parameter("crop_padding", "2.5"), "from 0 to 2"},
      {crops + Parameter("crop_min_score", "1.5"), "is '1.5', expected a score from 0 to 1"},
      {crops + Parameter("crop_max", "0"), "is '0', expected a whole number from 1 to 100"},
      {crops + Parameter("crop_max", "101"), "is '101', expected a whole number from 1 to 100"},
      {crops + Parameter("crop_classes", "dog"), "is 'dog', expected indices of the detector's classes"},
      {crops + Parameter("crop_classes", "-1"), "is '-1', expected indices"},
      {crops + Parameter("crop_classes", ""), "is '', expected indices"},
      {Parameter("crop_max", "3"), "is set without 'crops'"},
  };
  for (const auto& one : kCases) {
    const auto config = Parse(one.parameters);
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << one.parameters;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(one.error)) << one.parameters;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("m/config.pbtxt:")) << one.parameters;
  }
}

TEST(CropRulesTest, OneStepDetects) {
  const auto config = Parse(Parameter("crops", "names"), absl::StrCat(kStep, " ", kOtherStep));
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr("is set for an ensemble of 2 steps, expected a single one, which detects"));
}

}  // namespace
}  // namespace saccade::server
