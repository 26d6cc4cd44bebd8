#include "models/networks/deeplab/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/networks/deeplab/describe.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kKv = "deeplabv2_kao_kv";
constexpr auto kQkv = "deeplabv2_kao_qkv";

TEST(DeepLabCounts, AsppIsDeepLabV2) {
  EXPECT_EQ(CountDeepLab(kKv, {{"head", "aspp"}}).AllParameters(), 44'048'532);
  EXPECT_EQ(CountDeepLab(kQkv, {{"head", "aspp"}}).AllParameters(), 44'048'532);
  EXPECT_EQ(CountDeepLab(kKv, {{"head", "aspp"}}).AttentionMadds(), 0);
}

TEST(DeepLabCounts, AttentionHeads) {
  const int64_t backbone = 44'048'532 - 4 * (2048 * 9 * 21 + 21);
  // Parameters of reduce and its batch norm, three transforms, two biases, the coefficients' batch norm, the
  // classifier.
  const int64_t head = 2048 * 512 + 2 * 512 + 3 * 512 * 512 + 2 * 512 + 2 + 512 * 21 + 21;
  for (const char* kind : {"kao", "attention", "attention_pool"}) {
    const Counts counts = CountDeepLab(kKv, {{"head", kind}});
    EXPECT_EQ(counts.AllParameters(), backbone + head) << kind;
    EXPECT_EQ(counts.AttentionParameters(), 3 * 512 * 512);
  }
}

// On 41 x 41 positions.
TEST(DeepLabCounts, AttentionByThePapersRules) {
  const auto madds = [](const char* architecture, const char* head) {
    return CountDeepLab(architecture, {{"head", head}}).AttentionMadds();
  };
  const int64_t n = 41 * 41, averages = 82, c = 512;
  EXPECT_EQ(madds(kKv, "kao"), 2 * n * averages * c + n * c * c + 2 * averages * c * c);
  EXPECT_EQ(madds(kQkv, "kao"), 2 * averages * averages * c + 3 * averages * c * c);
  EXPECT_EQ(madds(kKv, "attention"), 2 * n * n * c + 3 * n * c * c);
  const int64_t pooled = 21 * 21;
  EXPECT_EQ(madds(kKv, "attention_pool"), 2 * n * pooled * c + (n + 2 * pooled) * c * c);
}

TEST(DeepLabCounts, MatchTheParametersThatAreLoaded) {
  for (const Options& options :
       {Options{}, Options{{"head", "aspp"}, {"classes", "5"}},
        Options{{"head_channels", "96"}, {"heads", "3"}, {"width", "0.25"}, {"blocks", "1,2,3,1"}}}) {
    Ledger ledger;
    RecordDeepLab(ParseDeepLabOptions(kKv, options), {97, 129}, ledger);
    int64_t parameters = 0;
    for (const TensorSpec& spec : ledger.tensors()) {
      int64_t size = 1;
      for (const int64_t side : spec.shape) size *= side;
      if (spec.name.find("running_") == std::string::npos) parameters += size;
    }
    EXPECT_EQ(DescribeDeepLab(kKv, options, {}).parameters, parameters);
  }
}

TEST(DeepLabTable, HasOnePositionEveryEightPixels) {
  const Counts counts = CountDeepLab(kKv, {{"head", "aspp"}});
  EXPECT_EQ(counts.layers.front().name, "conv1");
  EXPECT_EQ(counts.layers.back().name, "layer5.conv2d_list.3");
  EXPECT_EQ(counts.layers.back().operation, "3x3 convolution, 2048 to 21, dilation 24, 41x41");
}

TEST(DeepLabDescription, SaysWhatGoesInAndOut) {
  const Description description = DescribeDeepLab(kQkv, {{"classes", "3"}}, {"a", "b", "c"});
  EXPECT_EQ(description.architecture, kQkv);
  EXPECT_EQ(description.task, Task::kSegmentation);
  EXPECT_EQ(description.classes, 3);
  EXPECT_FALSE(description.input.rgb);
  // A blue value of 104.008 maps to 0, and a step of 1 in 0..255 to 1.
  EXPECT_FLOAT_EQ(description.input.mean[0] * 255, 104.008F);
  EXPECT_FLOAT_EQ(1 / (255 * description.input.std[1]), 1);
  const Placement kept = PlacementOf(description.input, {321, 500});
  EXPECT_EQ(kept.scaled, (Size{321, 500}));
  EXPECT_EQ(kept.bucket, (Size{352, 512}));
  EXPECT_EQ(PlacementOf(description.input, {1536, 2048}).bucket, (Size{768, 1024}));
}

TEST(DeepLabOptions, AreRead) {
  const DeepLabOptions options = ParseDeepLabOptions(kQkv, {{"head", "attention_pool"},
                                                            {"blocks", "1,2,33,4"},
                                                            {"buckets", "400x512,512x400"},
                                                            {"exact", "false"},
                                                            {"batch_norm_epsilon", "0.001"}});
  EXPECT_EQ(options.kao, "qkv");
  EXPECT_EQ(options.head, DeepLabHead::kAttentionPool);
  EXPECT_EQ(options.blocks, (std::array<int64_t, 4>{1, 2, 33, 4}));
  EXPECT_FALSE(options.exact);
  EXPECT_EQ(options.buckets.sizes.size(), 2U);
  EXPECT_EQ(options.epsilon, 0.001);
  const Options text = AsText(options);
  EXPECT_EQ(text.at("blocks"), "1,2,33,4");
  EXPECT_EQ(text.at("buckets"), "400x512,512x400");
  EXPECT_EQ(AsText(ParseDeepLabOptions(kQkv, text)), text);
  EXPECT_EQ(ParseDeepLabOptions(kKv, {}).kao, "kv");
}

std::string Error(const Options& options) {
  try {
    ParseDeepLabOptions(kKv, options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(DeepLabOptions, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Error({{"haed", "kao"}}), AllOf(HasSubstr("haed"), HasSubstr("attention_pool")));
  EXPECT_THAT(Error({{"classes", "256"}}), HasSubstr("1 to 255"));
  EXPECT_THAT(Error({{"head_channels", "100"}, {"heads", "3"}}),
              HasSubstr("a multiple of heads, which is 3"));
  EXPECT_THAT(Error({{"buckets", "stride"}}), HasSubstr("stride:N"));
  for (const char* blocks :
       {"", "3,4,23", "3,4,23,3,1", "3,4,23,", "3,4,0,3", "3,4,65,3", "3;4;23;3", "3,4,23,3 "})
    EXPECT_THAT(Error({{"blocks", blocks}}), HasSubstr("as 3,4,23,3")) << blocks;
}

}  // namespace
}  // namespace saccade::models
