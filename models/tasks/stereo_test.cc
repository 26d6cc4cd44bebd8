#include "models/tasks/stereo.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace saccade::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Description Pairs() {
  Description description;
  description.architecture = "pairs";
  description.task = Task::kStereo;
  description.input.views = 2;
  description.input.fit = Fit::kKeepRatio;
  return description;
}

TEST(DisparityAsSent, CutsThePaddingOff) {
  const at::Tensor disparities = at::arange(12, at::kFloat).view({3, 4});
  const Disparity disparity =
      DisparityAsSent(disparities, {.sent = {2, 3}, .scaled = {2, 3}, .bucket = {3, 4}});
  EXPECT_EQ(disparity.height, 2);
  EXPECT_EQ(disparity.width, 3);
  EXPECT_THAT(disparity.values, ElementsAre(0, 1, 2, 4, 5, 6));
}

// Twice the width means twice the disparity. Values beyond the picture must not affect the result.
TEST(DisparityAsSent, ScalesPlacesAndValues) {
  at::Tensor disparities = at::full({2, 4}, 1000.0F);
  disparities[0][0] = disparities[1][0] = 1;
  disparities[0][1] = disparities[1][1] = 2;
  const Disparity disparity =
      DisparityAsSent(disparities, {.sent = {2, 4}, .scaled = {2, 2}, .bucket = {2, 4}});
  const std::vector<float> line(disparity.values.begin(), disparity.values.begin() + 4);
  EXPECT_THAT(line, ElementsAre(FloatEq(2), FloatEq(2.5), FloatEq(3.5), FloatEq(4)));
}

// The values are those of torch.nn.functional.interpolate, limited to 0.
TEST(DepthAsSent, ScalesAsTheFilterDoes) {
  const at::Tensor depth = at::full({1, 4}, 1.0F);
  depth[0][0] = depth[0][1] = 0;
  const auto line = [&](Interpolation filter) {
    const at::Tensor made =
        DepthAsSent(depth, {.sent = {1, 8}, .scaled = {16, 16}, .bucket = {16, 16}}, filter);
    return std::vector<float>(made.const_data_ptr<float>(), made.const_data_ptr<float>() + made.numel());
  };
  EXPECT_THAT(line(Interpolation::kBilinear),
              Pointwise(FloatEq(), {0.0F, 0.0F, 0.0F, 0.25F, 0.75F, 1.0F, 1.0F, 1.0F}));
  EXPECT_THAT(line(Interpolation::kBicubic), Pointwise(FloatEq(), {0.0F, 0.0F, 0.0F, 0.2265625F, 0.7734375F,
                                                                   1.10546875F, 1.03515625F, 1.0F}));
}

TEST(DepthAsSent, ScalesBeforeItLimitsToZero) {
  const at::Tensor depth = at::full({1, 2}, 3.0F);
  depth[0][0] = -1;
  const at::Tensor made =
      DepthAsSent(depth, {.sent = {1, 4}, .scaled = {8, 8}, .bucket = {8, 8}}, Interpolation::kBilinear);
  const std::vector<float> line(made.const_data_ptr<float>(), made.const_data_ptr<float>() + 4);
  EXPECT_THAT(line, ElementsAre(0.0F, 0.0F, FloatEq(2), FloatEq(3)));
}

Batch ThreePairs() {
  const Placement placement = {.sent = {4, 4}, .scaled = {4, 4}, .bucket = {4, 4}};
  return {at::randn({3, 6, 4, 4}), {placement, placement, placement}};
}

TEST(MatchStereo, GivesTheNetworkOnePairAtATime) {
  const Batch batch = ThreePairs();
  int64_t calls = 0;
  const std::vector<TaskResult> results =
      MatchStereo(Pairs(), batch, [&](const at::Tensor& pair, Size scaled) {
        EXPECT_TRUE(pair[0].equal(batch.pixels[calls].narrow(0, 0, 3)));
        EXPECT_TRUE(pair[1].equal(batch.pixels[calls].narrow(0, 3, 3)));
        EXPECT_EQ(scaled, (Size{4, 4}));
        return at::full({4, 4}, static_cast<float>(++calls));
      });
  ASSERT_EQ(results.size(), 3U);
  EXPECT_THAT(std::get<Disparity>(results[2]).values, Each(3.0F));
}

TEST(MatchStereo, APairThatIsNotFiniteFailsAlone) {
  const Batch batch = ThreePairs();
  batch.pixels[1][5][3][3] = kNan;
  const auto network = [](const at::Tensor& pair, Size) {
    return at::full({4, 4}, pair[0][0][0][0].item<float>() > 100 ? kNan : 1.0F);
  };
  batch.pixels[2][0][0][0] = 101;
  const std::vector<TaskResult> results = MatchStereo(Pairs(), batch, network);
  EXPECT_THAT(std::get<Disparity>(results[0]).values, Each(1.0F));
  EXPECT_THAT(std::get<Failure>(results[1]).message, HasSubstr("the input holds"));
  EXPECT_THAT(std::get<Failure>(results[2]).message,
              HasSubstr("pairs computed a disparity that is not finite"));
}

TEST(MatchStereo, RefusesOtherBatches) {
  Batch batch = ThreePairs();
  batch.pixels = batch.pixels.narrow(1, 0, 3);
  EXPECT_THROW(MatchStereo(Pairs(), batch, nullptr), c10::Error);
}

}  // namespace
}  // namespace saccade::models
