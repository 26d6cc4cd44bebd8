#include "models/networks/residual/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
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
  // The paper prints 3.1, 4.0, 7.6 and 11.1.
  EXPECT_NEAR(Billions("expatt_resnet34"), 3.1, 0.05);
  EXPECT_NEAR(Billions("expatt_resnet50"), 4.0, 0.05);
  EXPECT_NEAR(Billions("expatt_resnet101"), 7.51, 0.01);
  EXPECT_NEAR(Billions("expatt_resnet152"), 11.1, 0.06);
}

// "To fit the resolution of CIFAR, we remove the first average pooling and change the stride of the first
// convolution to one": its 7x7 kernel stays. A 3x3 kernel would give 1.298 and 1.244 G. The paper prints
// 23.7 M and 1.31 G for ResNet-50, 22.7 M and 1.25 G for ExpAtt.
TEST(ResidualCounts, OnCifarHaveAFirstConvolutionOfStrideOne) {
  const Options cifar = {{"form", "cifar"}, {"classes", "100"}};
  EXPECT_EQ(Parameters("expatt_resnet50", cifar), 22'666'164);
  EXPECT_NEAR(Billions("expatt_resnet50", cifar), 1.252, 5e-4);
  Options plain = cifar;
  plain["attention"] = "none";
  EXPECT_EQ(Parameters("expatt_resnet50", plain), 23'712'932);
  EXPECT_NEAR(Billions("expatt_resnet50", plain), 1.306, 5e-4);
}

// The paper's equations 7 to 12: only the Gaussian and the two exponential maps have a sigma.
TEST(ResidualCounts, CountARadiusOnlyForMapsThatHaveOne) {
  const int64_t attended = 4 + 6 + 3;
  for (const char* map : {"exponential_euclidean", "exponential_manhattan"})
    EXPECT_EQ(Parameters("expatt_resnet50", {{"map", map}}), 24'522'357) << map;
  for (const char* map : {"constant", "linear", "cosine"})
    EXPECT_EQ(Parameters("expatt_resnet50", {{"map", map}}), 24'522'357 - attended) << map;
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

// "All 1x1 convolutions and GSA modules are followed by batch normalization." The paper prints 14.2, 18.1 and
// 30.4 M, which has room for batch norms behind Q, K and V as well.
TEST(ResidualCounts, OfGlobalSelfAttentionMayHaveNormedTransforms) {
  const Options normed = {{"transform_norms", "true"}};
  EXPECT_EQ(Parameters("gsa_resnet38", normed), 14'219'624);
  EXPECT_EQ(Parameters("gsa_resnet50", normed), 18'075'512);
  EXPECT_EQ(Parameters("gsa_resnet101", normed), 30'447'160);
}

// Table 4, "comparison of different variants of the proposed GSA module": without an axis there is neither
// its embedding nor the batch norm between both.
TEST(ResidualCounts, OfGlobalSelfAttentionsVariants) {
  int64_t embeddings = 0;
  int64_t middles = 0;
  for (const ResidualBlock& block : MakeResidualPlan(ParseResidualOptions("gsa_resnet50", {})).blocks) {
    const SpatialLayer& layer = block.spatial.front();
    embeddings += layer.offsets() * layer.inputs / 8;
    middles += 2 * layer.inputs;
  }
  EXPECT_EQ(Parameters("gsa_resnet50", {{"axes", "none"}}), 18'052'856 - 2 * embeddings - middles);
  for (const char* axis : {"column", "row"})
    EXPECT_EQ(Parameters("gsa_resnet50", {{"axes", axis}}), 18'052'856 - embeddings - middles) << axis;
}

// Table 3, "M-ResNet-50 is a modified ResNet-50 which halves the number of input and output channels of all
// residual blocks and scales the number of filters in every layer by 1.125": 12.7 M parameters, of which ours
// has 1 % more.
TEST(ResidualCounts, OfGlobalSelfAttentionOnANarrowerResNet) {
  const Options narrower = {{"expansion", "2"}, {"width", "1.125"}};
  const ResidualPlan plan = MakeResidualPlan(ParseResidualOptions("gsa_resnet50", narrower));
  EXPECT_EQ(plan.blocks.front().middle, 72);
  EXPECT_EQ(plan.blocks.front().outputs, 144);
  EXPECT_EQ(plan.features, 1152);
  EXPECT_EQ(Parameters("gsa_resnet50", narrower), 12'828'826);
}

// "Using different attention-maps across heads", of which there are 8: a radius each in all 16 layers.
// "Without using element-wise plus one" nothing is learned less.
TEST(ResidualCounts, OfTheAblationsOfExplicitlyModelledAttention) {
  Options cifar = {{"form", "cifar"}, {"classes", "100"}, {"shared_map", "false"}};
  EXPECT_EQ(Parameters("expatt_resnet50", cifar), 22'666'164 + 16 * 7);
  cifar = {{"form", "cifar"}, {"classes", "100"}, {"plus_one", "false"}};
  EXPECT_EQ(Parameters("expatt_resnet50", cifar), 22'666'164);
}

TEST(ResidualCounts, HeadsOfTheirOwnMapsNeedAWidthThatTheyDivide) {
  EXPECT_GT(Parameters("expatt_resnet34", {{"width", "0.35"}}), 0);
  EXPECT_GT(Parameters("expatt_resnet34", {{"width", "0.5"}, {"shared_map", "false"}}), 0);
  EXPECT_GT(Parameters("expatt_resnet50", {{"width", "0.35"}, {"shared_map", "false"}}), 0);
  try {
    Parameters("expatt_resnet34", {{"width", "0.35"}, {"shared_map", "false"}});
    ADD_FAILURE();
  } catch (const LoadError& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("option 'width' is 0.35, which gives layer2.0."));
    EXPECT_THAT(refused.what(), HasSubstr(" 12 channels of attention"));
  }
}

TEST(ResidualCounts, WithoutAttentionAreTorchvisions) {
  const Options none = {{"attention", "none"}};
  EXPECT_EQ(Parameters("expatt_resnet34", none), 21'797'672);
  EXPECT_EQ(Parameters("expatt_resnet50", none), 25'557'032);
  EXPECT_EQ(Parameters("gsa_resnet101", none), 44'549'160);
  EXPECT_EQ(Parameters("expatt_resnet152", none), 60'192'808);
}

// torchvision states these numbers for its weights.
TEST(ResidualCounts, OfTorchvisionsNamesAreTorchvisions) {
  EXPECT_EQ(Parameters("resnet18"), 11'689'512);
  EXPECT_EQ(Parameters("resnet34"), 21'797'672);
  EXPECT_EQ(Parameters("resnet50"), 25'557'032);
  EXPECT_EQ(Parameters("resnet101"), 44'549'160);
  EXPECT_EQ(Parameters("resnet152"), 60'192'808);
}

// The sizes of each network's weights="DEFAULT".
TEST(ResidualDescription, OfTorchvisionsNamesHasTheirPreprocessing) {
  for (const auto& [name, resize] : {std::pair{"resnet18", 256},
                                     {"resnet34", 256},
                                     {"resnet50", 232},
                                     {"resnet101", 232},
                                     {"resnet152", 232}}) {
    const ImageInput input = DescribeResidual(name, {}, {}).input;
    EXPECT_EQ(input.short_side, resize) << name;
    EXPECT_EQ(input.height, 224) << name;
    EXPECT_FALSE(input.reduced_jpeg) << name;
  }
  EXPECT_EQ(DescribeResidual("resnet50", {{"crop_size", "448"}}, {}).input.short_side, 464);
  const ImageInput paper = DescribeResidual("expatt_resnet50", {}, {}).input;
  EXPECT_EQ(paper.short_side, 256);
  EXPECT_TRUE(paper.reduced_jpeg);
  EXPECT_EQ(DescribeResidual("expatt_resnet50", {{"form", "cifar"}}, {}).input.short_side, 32);
}

TEST(ResidualDescription, SaysHowPicturesArePrepared) {
  const Options options = {{"resize_size", "300"},  {"crop_size", "280"}, {"interpolation", "bicubic"},
                           {"mean", "0.5,0.4,0.3"}, {"std", "0.1,0.2,1"}, {"reduced_jpeg", "true"}};
  const Description description = DescribeResidual("resnet18", options, {});
  EXPECT_EQ(description.input.short_side, 300);
  EXPECT_EQ(description.input.width, 280);
  EXPECT_EQ(description.input.interpolation, Interpolation::kBicubic);
  EXPECT_EQ(description.input.mean, (std::array<float, 3>{0.5F, 0.4F, 0.3F}));
  EXPECT_EQ(description.input.std, (std::array<float, 3>{0.1F, 0.2F, 1}));
  EXPECT_TRUE(description.input.reduced_jpeg);
  for (const auto& [name, value] : options) EXPECT_EQ(description.options.at(name), value) << name;
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
  EXPECT_THAT(error({{"map", "cosine"}, {"shared_map", "false"}}),
              HasSubstr("no radius for heads to differ"));
  EXPECT_THAT(error({{"content", "global"}}), HasSubstr("'content'"));
  EXPECT_THAT(error({{"crop_size", "224"}}), HasSubstr("input_size"));
  for (const char* mean :
       {"", "0.5", "0.5,0.5", "0.5,0.5,0.5,0.5", "0.5,0.5,x", "0.5,0.5,nan", "123.675,116.28,103.53"})
    EXPECT_THAT(error({{"mean", mean}}), HasSubstr("of pixels from 0 to 1")) << mean;
  EXPECT_THAT(error({{"std", "0,1,1"}}), HasSubstr("from 0.001 to 1"));
  EXPECT_THAT(error({{"interpolation", "lanczos"}}), HasSubstr("bilinear"));
  EXPECT_THAT(error({{"resize_size", "31"}}), HasSubstr("32 to 4096"));
  for (const Options& given :
       {Options{{"content", "none"}, {"axes", "none"}}, Options{{"content", "axial"}, {"axes", "row"}}}) {
    try {
      ParseResidualOptions("gsa_resnet50", given);
      ADD_FAILURE() << given.at("axes");
    } catch (const LoadError& refused) {
      EXPECT_THAT(refused.what(), HasSubstr("or any with content global"));
    }
  }
  for (const char* blocks : {"", "1", "1,2,3", "1,2,3,0", "1,2,3,4,5", "1,2,3,x"}) {
    EXPECT_THAT(error({{"blocks", blocks}}), HasSubstr("blocks")) << blocks;
  }
}

}  // namespace
}  // namespace saccade::models
