#include "models/networks/mask_rcnn/pyramid.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "models/networks/mask_rcnn/testing/networks.h"

namespace saccade::models {
namespace {

constexpr auto kR50 = "ea_mask_rcnn_r50";

class PyramidTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(3); }

  // The levels of two pictures that each fill a part of 96 x 128.
  std::vector<FeatureMap> Levels(const Options& options, const TensorMap& tensors) const {
    const c10::InferenceMode inference;
    const Pyramid pyramid(MakeMaskRcnnTable(kR50, ParseMaskRcnnOptions(kR50, options)), tensors);
    return pyramid({pixels_, Extents({{96, 100}, {70, 128}})});
  }

  at::Tensor pixels_ = at::randn({2, 3, 96, 128});
};

bool Same(const at::Tensor& a, const at::Tensor& b) { return a.sub(b).abs().max().item<float>() < 1e-5F; }

// Checks which levels each attention module changes, in both forms.
TEST_F(PyramidTest, AttentionActsWhereItStands) {
  for (const bool paper : {true, false}) {
    const Options options = testing::NarrowMaskRcnn({{"fpn", paper ? "paper" : "torchvision"}});
    const TensorMap tensors = testing::MaskRcnnTensors(kR50, options);
    const std::vector<FeatureMap> all = Levels(options, tensors);
    ASSERT_EQ(all.size(), paper ? 4U : 5U);
    for (int place = 0; place < kAttentionPlaces; ++place) {
      const auto name = static_cast<AttentionPlace>(place);
      TensorMap without = tensors;
      std::erase_if(without,
                    [&](const auto& entry) { return entry.first.starts_with(AttentionName(name) + "."); });
      const std::vector<FeatureMap> less = Levels(options, without);
      for (int level = 0; level < static_cast<int>(all.size()); ++level) {
        const bool everywhere = name == AttentionPlace::kRes3 || name == AttentionPlace::kRes4 ||
                                (paper && name == AttentionPlace::kFpn5);
        const auto index = static_cast<size_t>(level);
        EXPECT_EQ(!Same(all[index].values, less[index].values), everywhere || PyramidPlace(level) == name)
            << PlaceName(name) << " on fpn" << level + 1 << (paper ? ", paper" : ", torchvision");
      }
    }
  }
}

TEST_F(PyramidTest, ExactLevelsAreZeroBeyondTheirPictures) {
  for (const char* fpn : {"paper", "torchvision"}) {
    const Options options = testing::NarrowMaskRcnn({{"fpn", fpn}, {"exact", "true"}, {"attention", "none"}});
    const std::vector<FeatureMap> levels = Levels(options, testing::MaskRcnnTensors(kR50, options));
    int64_t spacing = 4;
    for (const FeatureMap& level : levels) {
      at::Tensor zeroed = level.values.clone();
      level.extents.ZeroBeyond(zeroed);
      EXPECT_TRUE(zeroed.equal(level.values));
      EXPECT_GT(zeroed.abs().max().item<float>(), 0);
      EXPECT_EQ(level.extents[1].width, 128 / spacing);
      spacing *= 2;
    }
  }
}

}  // namespace
}  // namespace saccade::models
