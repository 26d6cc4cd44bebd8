#include "models/networks/residual/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/api/error.h"
#include "models/networks/residual/describe.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;

int64_t Parameters(const std::string& architecture, const Options& options = {}) {
  return CountResidual(architecture, options).AllParameters();
}

double Billions(const std::string& architecture, const Options& options = {}) {
  return static_cast<double>(CountResidual(architecture, options).Madds()) / 1e9;
}

TEST(ResidualCounts, OfExplicitlyModelledAttentionArePublished) {
  EXPECT_EQ(Parameters("expatt_resnet34"), 17'316'674);
  EXPECT_EQ(Parameters("expatt_resnet50"), 24'522'357);
  EXPECT_EQ(Parameters("expatt_resnet101"), 42'688'710);
  EXPECT_EQ(Parameters("expatt_resnet152"), 57'636'375);
  EXPECT_EQ(Parameters("expatt_resnet50", {{"form", "cifar"}, {"classes", "100"}}), 22'658'484);
  // The paper prints 3.1, 4.0, 7.6 and 11.1, and 1.25 for CIFAR.
  EXPECT_NEAR(Billions("expatt_resnet34"), 3.1, 0.05);
  EXPECT_NEAR(Billions("expatt_resnet50"), 4.0, 0.05);
  EXPECT_NEAR(Billions("expatt_resnet101"), 7.51, 0.01);
  EXPECT_NEAR(Billions("expatt_resnet152"), 11.1, 0.06);
  EXPECT_NEAR(Billions("expatt_resnet50", {{"form", "cifar"}, {"classes", "100"}}), 1.245, 0.005);
}

TEST(ResidualCounts, OfGlobalSelfAttentionArePublished) {
  EXPECT_EQ(Parameters("gsa_resnet38"), 14'202'728);
  EXPECT_EQ(Parameters("gsa_resnet50"), 18'052'856);
  EXPECT_EQ(Parameters("gsa_resnet101"), 30'398'392);
  // The paper counts multiplications and additions separately.
  EXPECT_NEAR(2 * Billions("gsa_resnet38"), 5.895, 5e-4);
  EXPECT_NEAR(2 * Billions("gsa_resnet50"), 7.170, 5e-4);
  EXPECT_NEAR(2 * Billions("gsa_resnet101"), 12.179, 5e-4);
}

TEST(ResidualCounts, WithoutAttentionAreTorchvisions) {
  const Options none = {{"attention", "none"}};
  EXPECT_EQ(Parameters("expatt_resnet34", none), 21'797'672);
  EXPECT_EQ(Parameters("expatt_resnet50", none), 25'557'032);
  EXPECT_EQ(Parameters("gsa_resnet101", none), 44'549'160);
  EXPECT_EQ(Parameters("expatt_resnet152", none), 60'192'808);
}

TEST(ResidualOptions, AreReadAndRefused) {
  const ResidualOptions options =
      ParseResidualOptions("gsa_resnet50", {{"groups", "3-4"}, {"content", "axial"}, {"blocks", "1,2,1,1"}});
  EXPECT_EQ(options.first_group, 3);
  EXPECT_EQ(AsText("gsa_resnet50", options).at("blocks"), "1,2,1,1");
  EXPECT_EQ(ParseResidualOptions("expatt_resnet50", {}).first_group, 2);
  EXPECT_EQ(ParseResidualOptions("expatt_resnet50", {{"form", "cifar"}}).first_group, 1);
  const auto error = [](const Options& given) {
    try {
      ParseResidualOptions("expatt_resnet50", given);
      return std::string();
    } catch (const LoadError& refused) {
      return std::string(refused.what());
    }
  };
  EXPECT_THAT(error({{"map", "round"}}), HasSubstr("exponential_manhattan"));
  EXPECT_THAT(error({{"content", "global"}}), HasSubstr("'content'"));
  for (const char* blocks : {"", "1", "1,2,3", "1,2,3,0", "1,2,3,4,5", "1,2,3,x"}) {
    EXPECT_THAT(error({{"blocks", blocks}}), HasSubstr("blocks")) << blocks;
  }
}

}  // namespace
}  // namespace saccade::models
