#include "models/tasks/segment.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Placement Placed(Size sent, Size scaled) { return {sent, scaled, scaled}; }

std::vector<uint8_t> Labels(const at::Tensor& labels) {
  const at::Tensor bytes = labels.to(at::kByte).contiguous();
  return {bytes.const_data_ptr<uint8_t>(), bytes.const_data_ptr<uint8_t>() + bytes.numel()};
}

// Computes the definition in float64, pixel by pixel.
double Score(const at::Tensor& scores, int64_t stride, const Placement& placement, int64_t y, int64_t x,
             int64_t label) {
  const auto access = scores.accessor<float, 3>();
  const auto place = [&](int64_t pixel, int64_t sent, int64_t scaled, int64_t positions) {
    const double in_input =
        (static_cast<double>(pixel) + 0.5) * static_cast<double>(scaled) / static_cast<double>(sent) - 0.5;
    return std::clamp(in_input / static_cast<double>(stride), 0.0, static_cast<double>(positions - 1));
  };
  const double v = place(y, placement.sent.height, placement.scaled.height, scores.size(0));
  const double u = place(x, placement.sent.width, placement.scaled.width, scores.size(1));
  double score = 0;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    for (int64_t j = 0; j < scores.size(1); ++j) {
      score += std::max(0.0, 1 - std::abs(v - static_cast<double>(i))) *
               std::max(0.0, 1 - std::abs(u - static_cast<double>(j))) *
               static_cast<double>(access[i][j][label]);
    }
  }
  return score;
}

TEST(LabelMap, FollowsTheRule) {
  at::manual_seed(1);
  struct Case {
    int64_t height, width, classes, stride;
    Size sent, scaled;
  };
  for (const Case& c : {Case{5, 7, 21, 8, {33, 50}, {33, 50}}, Case{5, 7, 21, 8, {80, 101}, {35, 49}},
                        Case{5, 7, 3, 8, {9, 11}, {37, 55}}, Case{1, 1, 4, 8, {6, 3}, {2, 1}},
                        Case{1, 6, 255, 4, {3, 40}, {1, 21}}, Case{4, 1, 2, 1, {4, 1}, {4, 1}}}) {
    const at::Tensor scores = at::randn({c.height, c.width, c.classes});
    const Placement placement = Placed(c.sent, c.scaled);
    const Segmentation got = LabelMap(scores, c.stride, placement);
    ASSERT_EQ(got.height, c.sent.height);
    ASSERT_EQ(got.width, c.sent.width);
    std::vector<int64_t> areas(static_cast<size_t>(c.classes));
    for (int64_t y = 0; y < c.sent.height; ++y) {
      for (int64_t x = 0; x < c.sent.width; ++x) {
        const int64_t label = got.labels[static_cast<size_t>(y * c.sent.width + x)];
        ++areas.at(static_cast<size_t>(label));
        double best = -std::numeric_limits<double>::infinity();
        for (int64_t k = 0; k < c.classes; ++k)
          best = std::max(best, Score(scores, c.stride, placement, y, x, k));
        ASSERT_GT(Score(scores, c.stride, placement, y, x, label), best - 1e-5) << y << " " << x;
      }
    }
    EXPECT_EQ(got.areas, areas);
  }
}

// If the last position is on the last pixel, the result must equal the interpolation used in training.
TEST(LabelMap, IsAlignedCornersInterpolationWhereTheMapEndsWithThePicture) {
  at::manual_seed(2);
  const at::Tensor scores = at::randn({1, 6, 9, 7});
  const at::Tensor expected =
      at::upsample_bilinear2d(scores.to(at::kDouble), {65, 49}, /*align_corners=*/true).argmax(1);
  const Segmentation got = LabelMap(scores[0].permute({1, 2, 0}).contiguous(), 8, Placed({65, 49}, {65, 49}));
  EXPECT_EQ(got.labels, Labels(expected));
}

TEST(LabelMap, GivesTiesToTheFirstClass) {
  at::Tensor scores = at::zeros({2, 3, 4});
  scores.select(2, 2).fill_(0.7);
  scores.select(2, 3).fill_(0.7);
  const Segmentation got = LabelMap(scores, 8, Placed({13, 17}, {9, 17}));
  EXPECT_THAT(got.areas, ElementsAre(0, 0, 13 * 17, 0));
  EXPECT_THAT(LabelMap(at::zeros({2, 2, 3}), 8, Placed({5, 5}, {9, 9})).areas, ElementsAre(25, 0, 0));
}

TEST(LabelMap, TakesLargeScoresAndManyPixels) {
  at::Tensor scores = at::full({2, 2, 2}, -3e38F);
  scores[0][0][1] = scores[1][0][1] = 3e38F;
  const Segmentation got = LabelMap(scores, 8, Placed({600, 900}, {9, 9}));
  EXPECT_EQ(std::accumulate(got.areas.begin(), got.areas.end(), int64_t{0}), 600 * 900);
  EXPECT_EQ(got.labels.front(), 1);
  // At the right edge both scores are -3e38: the first class wins.
  EXPECT_EQ(got.labels.back(), 0);
}

class SegmentTest : public ::testing::Test {
 protected:
  SegmentTest() {
    description_.architecture = "segmenter";
    description_.input.fit = Fit::kKeepRatio;
    description_.classes = 3;
    for (const Size scaled : {Size{16, 24}, Size{9, 10}, Size{16, 1}})
      batch_.placements.push_back({{20, 30}, scaled, {16, 24}});
    batch_.pixels = at::rand({3, 3, 16, 24});
    scores_ = at::randn({3, 3, 2, 3});
  }

  std::vector<TaskResult> Run() const {
    return Segment(description_, batch_, [&](const Batch& batch) {
      return ScoreMaps{scores_, Extents({{2, 3}, {2, 2}, {2, 1}}),
                       static_cast<int64_t>(batch.placements.size()) == 3 ? 8 : 0};
    });
  }

  Description description_;
  Batch batch_;
  at::Tensor scores_;
};

TEST_F(SegmentTest, UsesEachPicturesOwnPositions) {
  scores_[1].select(2, 2).fill_(100);  // beyond the second picture's extent
  const std::vector<TaskResult> results = Run();
  ASSERT_EQ(results.size(), 3U);
  const at::Tensor own = scores_[1].narrow(2, 0, 2).permute({1, 2, 0}).contiguous();
  const auto& got = std::get<Segmentation>(results[1]);
  EXPECT_EQ(got.labels, LabelMap(own, 8, batch_.placements[1]).labels);
  EXPECT_EQ(got.height, 20);
  EXPECT_EQ(got.width, 30);
}

TEST_F(SegmentTest, APictureThatIsNotFiniteFailsAlone) {
  const std::vector<TaskResult> clean = Run();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  scores_[0][1][1][2] = kNan;
  scores_[1][0][0][2] = kNan;  // in padding, which must be ignored
  batch_.pixels[2][0][3][0] = kNan;
  const std::vector<TaskResult> results = Run();
  EXPECT_THAT(std::get<Failure>(results[0]).message,
              HasSubstr("segmenter computed a score that is not finite"));
  EXPECT_EQ(std::get<Segmentation>(results[1]).labels, std::get<Segmentation>(clean[1]).labels);
  EXPECT_THAT(std::get<Failure>(results[2]).message, HasSubstr("the input holds a value"));
}

TEST_F(SegmentTest, RefusesBatchesThatDoNotFit) {
  batch_.placements.pop_back();
  EXPECT_THROW(Run(), c10::Error);
}

}  // namespace
}  // namespace saccade::models
