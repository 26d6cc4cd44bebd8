#include "models/tasks/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

Detection WithMask(float x_min, float y_min, float x_max, float y_max, std::vector<float> mask) {
  return {x_min, y_min, x_max, y_max, 1, 1, std::move(mask)};
}

const std::vector<float> kCorners = {0.9F, 0.2F, 0.4F, 0.7F};

// Expected values are from torchvision 0.26's paste_masks_in_image for the same boxes, in a picture of 5 x 6.
TEST(PasteMask, GivesWhatTorchvisionGives) {
  const MaskRegion region = PasteMask(WithMask(1.2F, 0.7F, 4.9F, 3.1F, kCorners), 2, 5, 6);
  EXPECT_EQ(region.x, 0);
  EXPECT_EQ(region.y, 0);
  EXPECT_EQ(region.width, 6);
  EXPECT_EQ(region.height, 5);
  const std::vector<float> rows = {0, 0,          0,          0,          0,          0,           //
                                   0, 0.2250000F, 0.5850001F, 0.3850000F, 0.1300000F, 0.0500000F,  //
                                   0, 0.2321429F, 0.6035714F, 0.5500000F, 0.4178571F, 0.1607142F,  //
                                   0, 0.1000000F, 0.2600001F, 0.3850001F, 0.4549999F, 0.1749999F,  //
                                   0, 0,          0,          0,          0,          0};
  EXPECT_THAT(region.values, Pointwise(FloatNear(1e-6F), rows));
}

TEST(PasteMask, CutsWhatReachesBeyondThePicture) {
  const MaskRegion region = PasteMask(WithMask(-3.5F, 1, 2.25F, 9, kCorners), 2, 5, 6);
  EXPECT_EQ(region.x, 0);
  EXPECT_EQ(region.y, 0);
  EXPECT_EQ(region.width, 6);
  EXPECT_EQ(region.height, 5);
  const std::vector<float> rows = {0.1401961F, 0.0647059F, 0.0431372F, 0.0215686F, 0, 0,  //
                                   0.2421568F, 0.1117647F, 0.0745098F, 0.0372549F, 0, 0,  //
                                   0.3441176F, 0.1588235F, 0.1058823F, 0.0529412F, 0, 0,  //
                                   0.4382353F, 0.2147059F, 0.1431372F, 0.0715686F, 0, 0,  //
                                   0.4774510F, 0.3323530F, 0.2215686F, 0.1107843F, 0, 0};
  EXPECT_THAT(region.values, Pointwise(FloatNear(1e-6F), rows));
}

TEST(PasteMask, IsEmptyWhereThereIsNothingToShow) {
  EXPECT_TRUE(PasteMask(WithMask(1, 1, 3, 3, {}), 2, 5, 6).values.empty());
  EXPECT_TRUE(PasteMask(WithMask(1, 1, 3, 3, {}), 0, 5, 6).values.empty());
  EXPECT_TRUE(PasteMask(WithMask(20, 1, 23, 3, kCorners), 2, 5, 6).values.empty());
  EXPECT_TRUE(PasteMask(WithMask(1, -9, 3, -4, kCorners), 2, 5, 6).values.empty());
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(PasteMask(WithMask(1, kNan, 3, 3, kCorners), 2, 5, 6).values.empty());
  EXPECT_TRUE(PasteMask(WithMask(1, 1, 1e30F, 3, kCorners), 2, 5, 6).values.empty());
}

TEST(PasteMask, HoldsNoMoreThanThePicture) {
  const MaskRegion region = PasteMask(WithMask(-4e8F, -4e8F, 4e8F, 4e8F, kCorners), 2, 5, 6);
  EXPECT_EQ(region.values.size(), 30U);
}

// A region whose set pixels are the '#' in `rows`.
MaskRegion Drawn(int64_t x, int64_t y, const std::vector<std::string>& rows) {
  MaskRegion region{x, y, static_cast<int64_t>(rows[0].size()), static_cast<int64_t>(rows.size()), {}};
  for (const std::string& row : rows) {
    for (const char pixel : row) region.values.push_back(pixel == '#' ? 0.5F : 0.4999F);
  }
  return region;
}

TEST(EncodeRle, GoesDownTheColumns) {
  EXPECT_THAT(EncodeRle(Drawn(1, 1, {"#.", "##"}), 4, 4, 0.5F), ElementsAre(5, 2, 3, 1, 5));
  EXPECT_THAT(EncodeRle(Drawn(0, 0, {"#"}), 1, 1, 0.5F), ElementsAre(0, 1));
  EXPECT_THAT(EncodeRle(Drawn(0, 0, {"##", "##"}), 2, 2, 0.5F), ElementsAre(0, 4));
  EXPECT_THAT(EncodeRle(Drawn(0, 1, {".."}), 3, 2, 0.5F), ElementsAre(6));
  EXPECT_THAT(EncodeRle({}, 3, 2, 0.5F), ElementsAre(6));
}

// Expected texts are from pycocotools for the same pixels and run lengths.
TEST(CocoText, IsWhatPycocotoolsWrites) {
  const MaskRegion region = Drawn(0, 2,
                                  {"...#####.",  //
                                   "...#.###.",  //
                                   "...#####.",  //
                                   ".........",  //
                                   "#........"});
  EXPECT_EQ(CocoText(EncodeRle(region, 7, 9, 0.5F)), "61`02DNM03200005");
  EXPECT_EQ(CocoText({0, 6}), "06");
  EXPECT_EQ(CocoText({200'000}), "PZS6");
  EXPECT_EQ(CocoText({0, 5, 1, 1, 100, 1}), "051LS30");
  EXPECT_EQ(CocoText({1000, 1, 2, 3, 4, 5, 6, 39969}), "Xo0122222lPW1");
  EXPECT_EQ(CocoText({3, 15, 16, 17, 40000, 31, 32, 33, 1, 2}), "3?`02`QW1>PohN2QOQO");
}

TEST(AreaOf, CountsEverySecondRun) {
  EXPECT_EQ(AreaOf({5, 2, 3, 1, 5}), 3);
  EXPECT_EQ(AreaOf({0, 6}), 6);
  EXPECT_EQ(AreaOf({7}), 0);
}

TEST(EncodeRle, CoversThePictureWhateverTheRegion) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const auto below = [&](int64_t limit) {
      return std::uniform_int_distribution<int64_t>(0, limit - 1)(random);
    };
    const int64_t height = 1 + below(40);
    const int64_t width = 1 + below(40);
    MaskRegion region{below(width), below(height), 0, 0, {}};
    region.width = 1 + below(width - region.x);
    region.height = 1 + below(height - region.y);
    int64_t area = 0;
    for (int64_t i = 0; i < region.width * region.height; ++i) {
      region.values.push_back(static_cast<float>(below(3)) / 2);
      area += region.values.back() >= 0.5F ? 1 : 0;
    }
    const std::vector<uint32_t> counts = EncodeRle(region, height, width, 0.5F);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), height * width);
    EXPECT_EQ(AreaOf(counts), area);
    for (size_t i = 1; i < counts.size(); ++i) EXPECT_GT(counts[i], 0U);
  }
}

}  // namespace
}  // namespace saccade::models
