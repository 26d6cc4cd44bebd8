#include "models/networks/unet3d/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/api/error.h"
#include "models/networks/unet3d/describe.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDenoise = "unet3d_sao_denoise";
constexpr auto kProject = "unet3d_sao_project";

// Weights of the U-Net's convolutions, per position of the kernel.
constexpr int64_t kEncoder0 = 1 * 32 + 32 * 32;
constexpr int64_t kEncoder1 = 32 * 64 + 64 * 64;
constexpr int64_t kBottom = 64 * 128 + 128 * 64;
constexpr int64_t kDecoder1 = 128 * 64 + 64 * 32;
constexpr int64_t kDecoder0 = 64 * 32 + 32 * 32;
constexpr int64_t kConvolutions = kEncoder0 + kEncoder1 + kBottom + kDecoder1 + kDecoder0;
constexpr int64_t kNorms = 2 * (2 * 32 + 2 * 64 + 128 + 64 + 64 + 32 + 2 * 32);
// Three transforms and w, of the bottom and both decoders; then their batch norms.
constexpr int64_t kAttention = 3 * 64 * 64 + 64 + 2 * (3 * 32 * 32 + 32);
constexpr int64_t kAttentionNorms = 2 * (64 + 32 + 32);

TEST(UnetCounts, ParametersByHand) {
  const Counts counts = CountUnet(kDenoise, {});
  EXPECT_EQ(counts.Parameters(), 27 * kConvolutions + kAttention + 32);
  EXPECT_EQ(counts.AllParameters(), counts.Parameters() + kNorms + kAttentionNorms + 1);
  EXPECT_EQ(counts.AllParameters(), 1'016'129);
  EXPECT_EQ(counts.AttentionParameters(), kAttention);
  EXPECT_EQ(CountUnet(kDenoise, {{"attention", "none"}}).AllParameters(),
            counts.AllParameters() - kAttention - kAttentionNorms);
  EXPECT_EQ(CountUnet(kDenoise, {{"similarity", "ones"}}).Parameters(), counts.Parameters() - 64 - 2 * 32);
}

TEST(UnetCounts, AProjectionHasAVolumesPartAndAPlanesPart) {
  constexpr int64_t kProjection =
      27 * (8 + 8 * 16 + 16 * 32 + 48 * 16 + 24 * 8) + 2 * (8 + 16 + 32 + 16 + 8) + 8 + 1;
  EXPECT_EQ(CountUnet(kProject, {}).AllParameters(),
            kProjection + 9 * kConvolutions + kNorms + kAttention + kAttentionNorms + 32 + 1);
  EXPECT_EQ(CountUnet(kProject, {}).AllParameters(), 395'586);
}

TEST(UnetCounts, MultiplyAddsByHand) {
  const int64_t n = int64_t{16} * 64 * 64;
  const int64_t convolutions =
      27 * (n * (kEncoder0 + kDecoder0) + n / 8 * (kEncoder1 + kDecoder1) + n / 64 * kBottom) + n * 32;
  const auto attention = [](int64_t positions, int64_t channels) {
    return positions * (3 * channels * channels + 4 * channels);
  };
  const Counts counts = CountUnet(kDenoise, {});
  EXPECT_EQ(counts.AttentionMadds(), attention(n / 64, 64) + attention(n / 8, 32) + attention(n, 32));
  EXPECT_EQ(counts.Madds(), convolutions + counts.AttentionMadds());
  // A plane has quarters where a volume has eighths; the projection halves only height and width.
  const int64_t p = int64_t{64} * 64;
  const int64_t plane =
      9 * (p * (kEncoder0 + kDecoder0) + p / 4 * (kEncoder1 + kDecoder1) + p / 16 * kBottom);
  const int64_t weighing =
      50 * p * (27 * (8 + 24 * 8) + 8) + 50 * p / 4 * 27 * (8 * 16 + 48 * 16) + 50 * p / 16 * 27 * 16 * 32;
  EXPECT_EQ(CountUnet(kProject, {{"attention", "none"}}).Madds(), plane + p * 32 + weighing);
}

// "U-Net with regular attention operator (U-Net+Attn)" has SAO's transforms and batch norms, but no w.
TEST(UnetCounts, RegularAttentionComparesAllPositions) {
  const Options regular = {{"attention", "attn"}};
  const Counts counts = CountUnet(kDenoise, regular);
  EXPECT_EQ(counts.AllParameters(), 1'016'129 - 64 - 2 * 32);
  const auto attention = [](int64_t positions, int64_t channels) {
    return positions * (3 * channels * channels + 2 * positions * channels);
  };
  const int64_t n = int64_t{16} * 64 * 64;
  EXPECT_EQ(counts.AttentionMadds(), attention(n / 64, 64) + attention(n / 8, 32) + attention(n, 32));
  EXPECT_EQ(CountUnet(kProject, regular).AllParameters(), 395'586 - 64 - 2 * 32);
}

// Time grows as the square of a volume, so that larger ones than a patch must be asked for.
TEST(UnetOptions, BoundVolumesForRegularAttention) {
  const UnetOptions regular = ParseUnetOptions(kDenoise, {{"attention", "attn"}});
  EXPECT_EQ(regular.attention, UnetAttention::kRegular);
  EXPECT_EQ(regular.max_voxels, int64_t{1} << 18);
  EXPECT_EQ(AsText(regular).at("attention"), "attn");
  EXPECT_EQ(ParseUnetOptions(kDenoise, {{"attention", "attn"}, {"max_voxels", "1000000"}}).max_voxels,
            1'000'000);
}

std::set<std::string> Names(const Options& options, const std::string& architecture) {
  std::set<std::string> names;
  const Ledger ledger = RecordUnet(ParseUnetOptions(architecture, options));
  for (const TensorSpec& spec : ledger.tensors()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
  }
  return names;
}

TEST(UnetTable, Names) {
  const std::set<std::string> names = Names({}, kProject);
  for (const char* name :
       {"encoder.0.conv1.weight", "encoder.1.bn2.running_var", "bottom.conv2.weight",
        "bottom.attention.query.weight", "bottom.attention.w", "bottom.attention.bn.bias",
        "decoder.1.attention.key.weight", "decoder.0.attention.value.weight", "output.bias",
        "projection.encoder.0.conv1.weight", "projection.decoder.1.bn1.weight", "projection.output.weight"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("encoder.0.attention.w"));
  EXPECT_FALSE(names.contains("projection.encoder.0.conv2.weight"));
  EXPECT_FALSE(names.contains("projection.bottom.attention.w"));
  EXPECT_FALSE(Names({}, kDenoise).contains("projection.output.weight"));
  EXPECT_FALSE(Names({{"attention", "none"}}, kDenoise).contains("bottom.attention.w"));
  EXPECT_FALSE(Names({{"attention", "attn"}}, kDenoise).contains("bottom.attention.w"));
  EXPECT_TRUE(Names({{"attention", "attn"}}, kDenoise).contains("decoder.0.attention.bn.bias"));
}

TEST(UnetOptions, AreRead) {
  const UnetOptions options = ParseUnetOptions(kDenoise, {{"attention", "none"},
                                                          {"similarity", "ones"},
                                                          {"global_term", "false"},
                                                          {"heads", "4"},
                                                          {"normalize", "none"},
                                                          {"residual", "false"},
                                                          {"width", "0.5"},
                                                          {"tile", "0"},
                                                          {"max_voxels", "5000"}});
  EXPECT_EQ(options.attention, UnetAttention::kNone);
  EXPECT_FALSE(options.learned || options.global_term || options.percentile || options.residual ||
               options.projects);
  EXPECT_EQ(options.heads, 4);
  EXPECT_EQ(options.tile, 0);
  EXPECT_EQ(ParseUnetOptions(kDenoise, AsText(options)).max_voxels, 5000);
  EXPECT_EQ(AsText(options).at("width"), "0.5");
  EXPECT_TRUE(ParseUnetOptions(kProject, {}).projects);
  // The paper's largest volumes must be accepted.
  EXPECT_GE(ParseUnetOptions(kDenoise, {}).max_voxels, int64_t{95} * 1024 * 1024);
}

// Returns the error's text, or "" if there is none.
std::string Error(const Options& options) {
  try {
    ParseUnetOptions(kDenoise, options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(UnetOptions, RefuseBadValues) {
  EXPECT_THAT(Error({{"attention", "ea"}}), AllOf(HasSubstr("'ea'"), HasSubstr("sao or attn or none")));
  EXPECT_THAT(Error({{"heads", "3"}}), AllOf(HasSubstr("heads"), HasSubstr("1 or 2 or 4 or 8")));
  EXPECT_THAT(Error({{"normalize", "mean"}}), HasSubstr("percentile or none"));
  EXPECT_THAT(Error({{"residual", "1"}}), HasSubstr("true or false"));
  EXPECT_THAT(Error({{"width", "5"}}), HasSubstr("a number from 0.25 to 4"));
  EXPECT_THAT(Error({{"tile", "-1"}}), HasSubstr("a whole number from 0 to 4096"));
  EXPECT_THAT(Error({{"max_voxels", "1"}}), HasSubstr("a whole number from 4096 to"));
  EXPECT_THAT(Error({{"classes", "21"}}), AllOf(HasSubstr("'classes'"), HasSubstr("\n  normalize: ")));
}

TEST(UnetDescription, TakesVolumes) {
  const Description description = DescribeUnet(kProject, {}, {});
  EXPECT_EQ(description.task, Task::kRestoration);
  EXPECT_EQ(description.input.medium, Medium::kVolume);
  EXPECT_EQ(description.input.channels(), 1);
  EXPECT_EQ(description.input.volume.max_voxels, int64_t{128} << 20);
  EXPECT_EQ(description.parameters, 395'586);
  const std::vector<Placement> warm = PlacementsToWarm(description.input);
  ASSERT_EQ(warm.size(), 1U);
  EXPECT_EQ(warm[0], PlacementOfVolume({64, 64}, 50));
  const VolumeInput denoised = DescribeUnet(kDenoise, {}, {}).input.volume;
  EXPECT_EQ(denoised.depth, 16);
  EXPECT_EQ(denoised.depth_multiple, 4);
  EXPECT_EQ(denoised.side_multiple, 4);
  EXPECT_EQ(description.input.volume.depth_multiple, 1);
  EXPECT_EQ(description.input.volume.side_multiple, 4);
}

}  // namespace
}  // namespace saccade::models
