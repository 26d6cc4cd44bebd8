#include "server/encode/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <random>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A mask region at x, y, given as rows of text with "#" for mask pixels.
models::MaskRegion Drawn(int64_t x, int64_t y, const std::vector<std::string>& rows) {
  models::MaskRegion region{
      x, y, static_cast<int64_t>(rows[0].size()), static_cast<int64_t>(rows.size()), {}};
  for (const std::string& row : rows) {
    for (const char pixel : row) region.values.push_back(pixel == '#' ? 0.5F : 0.49F);
  }
  return region;
}

// Fills the polygons in a picture of the given size.
std::vector<uint8_t> Filled(const std::vector<MaskPolygon>& polygons, int64_t height, int64_t width) {
  std::vector<std::vector<cv::Point>> contours;
  for (const MaskPolygon& polygon : polygons) {
    std::vector<cv::Point>& contour = contours.emplace_back();
    for (size_t i = 0; i < polygon.points.size(); i += 2)
      contour.emplace_back(polygon.points[i], polygon.points[i + 1]);
  }
  cv::Mat picture = cv::Mat::zeros(static_cast<int>(height), static_cast<int>(width), CV_8UC1);
  cv::fillPoly(picture, contours, cv::Scalar(255));
  return {picture.begin<uint8_t>(), picture.end<uint8_t>()};
}

TEST(MaskTest, BitsAreTheSmallestPartThatHoldsTheMask) {
  const MaskBits bits = BitsOf(Drawn(10, 20, {".....", "..#..", ".##..", "....."}), 0.5F);
  EXPECT_EQ(bits.x, 11);
  EXPECT_EQ(bits.y, 21);
  EXPECT_EQ(bits.width, 2);
  EXPECT_EQ(bits.height, 2);
  EXPECT_THAT(bits.values, ElementsAre(0, 255, 255, 255));
  EXPECT_EQ(bits.area, 3);
}

TEST(MaskTest, AMaskWithoutPixelsHasNothing) {
  for (const models::MaskRegion& region : {Drawn(3, 4, {"...", "..."}), models::MaskRegion()}) {
    const MaskBits bits = BitsOf(region, 0.5F);
    EXPECT_EQ(bits.width, 0);
    EXPECT_EQ(bits.height, 0);
    EXPECT_EQ(bits.area, 0);
    EXPECT_THAT(bits.values, IsEmpty());
    const auto polygons = PolygonsOf(bits);
    ASSERT_TRUE(polygons.ok()) << polygons.status();
    EXPECT_THAT(*polygons, IsEmpty());
  }
}

TEST(MaskTest, APolygonGoesAroundAndAHoleSaysSo) {
  const auto polygons = PolygonsOf(BitsOf(Drawn(5, 7, {"####", "#..#", "#..#", "####"}), 0.5F));
  ASSERT_TRUE(polygons.ok()) << polygons.status();
  ASSERT_EQ(polygons->size(), 2U);
  EXPECT_FALSE(polygons->front().hole);
  EXPECT_THAT(polygons->front().points, ElementsAre(5, 7, 5, 10, 8, 10, 8, 7));
  EXPECT_TRUE(polygons->back().hole);
}

TEST(MaskTest, FilledTogetherPolygonsAreTheMaskToThePixel) {
  std::mt19937 random(1);
  // The thresholds range from a sheet whose holes contain parts with holes to scattered pixels.
  for (const float threshold : {0.2F, 0.4F, 0.6F, 0.9F}) {
    for (const int side : {1, 2, 7, 40}) {
      const int64_t height = side + 9;
      const int64_t width = 2 * side + 11;
      models::MaskRegion region{4, 6, 2 * side, side, {}};
      std::vector<uint8_t> expected(static_cast<size_t>(height * width));
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < 2 * side; ++x) {
          const float value = std::uniform_real_distribution<float>()(random);
          region.values.push_back(value);
          if (value >= threshold) expected[static_cast<size_t>((y + 6) * width + x + 4)] = 255;
        }
      }
      const auto polygons = PolygonsOf(BitsOf(region, threshold));
      ASSERT_TRUE(polygons.ok()) << polygons.status();
      EXPECT_EQ(Filled(*polygons, height, width), expected) << side << " at " << threshold;
    }
  }
}

}  // namespace
}  // namespace saccade::server
