#include "models/networks/mask_rcnn/candidates.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace saccade::models {
namespace {

constexpr int64_t kMax = 40;

// The head's output for pictures whose parts of the levels have these extents; padding has large logits.
std::vector<FeatureMap> Levels(const std::vector<Size>& extents) {
  at::manual_seed(3);
  std::vector<FeatureMap> levels;
  for (const int64_t stride : {1, 2, 4}) {
    std::vector<Size> sizes;
    for (const Size size : extents)
      sizes.push_back({(size.height + stride - 1) / stride, (size.width + stride - 1) / stride});
    const auto pictures = static_cast<int64_t>(extents.size());
    FeatureMap level{at::randn({pictures, kProposalOutputs, 8 / stride, 12 / stride})
                         .contiguous(at::MemoryFormat::ChannelsLast),
                     Extents(std::move(sizes))};
    level.extents.FillBeyond(level.values, 9);
    levels.push_back(level);
  }
  return levels;
}

void ExpectEqual(const Candidates& got, const Candidates& expected) {
  EXPECT_TRUE(got.logits.equal(expected.logits));
  EXPECT_TRUE(got.anchors.equal(expected.anchors));
  EXPECT_TRUE(got.deltas.equal(expected.deltas));
  EXPECT_EQ(got.grid, expected.grid);
}

TEST(CandidatesTest, TheDeviceChoosesWhatTheHostChooses) {
  const std::vector<Size> extents = {{8, 12}, {5, 12}, {1, 2}};
  const auto levels = Levels(extents);
  const auto host = ChooseCandidates(levels, kMax, /*exact=*/true, /*on_device=*/false);
  const auto device = ChooseCandidates(levels, kMax, /*exact=*/true, /*on_device=*/true);
  ASSERT_EQ(device.size(), extents.size());
  for (size_t i = 0; i < device.size(); ++i) {
    ASSERT_TRUE(host[i].finite && device[i].finite);
    ASSERT_EQ(device[i].levels.size(), levels.size());
    for (size_t level = 0; level < levels.size(); ++level)
      ExpectEqual(device[i].levels[level], host[i].levels[level]);
  }
  EXPECT_EQ(device[0].levels[0].logits.numel(), kMax);
  EXPECT_EQ(device[2].levels[0].logits.numel(), 2 * kAspectRatios) << "padding is no candidate";
}

TEST(CandidatesTest, PaddingCountsUnlessExact) {
  // Without equal logits, of which either may be chosen.
  const auto levels = Levels({{8, 12}});
  const auto host = ChooseCandidates(levels, kMax, /*exact=*/false, /*on_device=*/false);
  const auto device = ChooseCandidates(levels, kMax, /*exact=*/false, /*on_device=*/true);
  for (size_t level = 0; level < levels.size(); ++level)
    ExpectEqual(device[0].levels[level], host[0].levels[level]);
  const auto padded = ChooseCandidates(Levels({{5, 7}}), kMax, /*exact=*/false, /*on_device=*/true);
  EXPECT_EQ(padded[0].levels[0].logits[0].item<float>(), 9);
}

TEST(CandidatesTest, OfEqualLogitsTheDeviceTakesTheFirst) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const FeatureMap level{at::zeros({2, kProposalOutputs, 6, 7}, type), Extents({{6, 7}, {6, 7}})};
    level.values[1].select(0, 1).fill_(-1);
    const auto chosen = ChooseCandidates({level}, 5, /*exact=*/false, /*on_device=*/true);
    EXPECT_TRUE(chosen[0].levels[0].anchors.equal(at::arange(5)));
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(chosen[1].levels[0].anchors[i].item<int64_t>(), i / 2 * kAspectRatios + i % 2 * 2);
  }
}

TEST(CandidatesTest, ZerosOfEitherSignAreEqualLogits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const bool exact : {false, true}) {
      const FeatureMap level{at::zeros({1, kProposalOutputs, 6, 7}, type), Extents({{6, 7}})};
      level.values.select(1, 0).fill_(-0.0);
      const auto chosen = ChooseCandidates({level}, 5, exact, /*on_device=*/true);
      EXPECT_TRUE(chosen[0].levels[0].anchors.equal(at::arange(5)));
    }
  }
}

TEST(CandidatesTest, APictureWhoseNumbersAreNotFiniteIsTold) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool on_device : {false, true}) {
      const auto levels = Levels({{8, 12}, {8, 12}, {8, 12}});
      levels[2].values[1][kProposalOutputs - 1][0][0].fill_(bad);
      const auto chosen = ChooseCandidates(levels, kMax, /*exact=*/false, on_device);
      EXPECT_TRUE(chosen[0].finite);
      EXPECT_FALSE(chosen[1].finite);
      EXPECT_TRUE(chosen[2].finite);
    }
  }
}

}  // namespace
}  // namespace saccade::models
