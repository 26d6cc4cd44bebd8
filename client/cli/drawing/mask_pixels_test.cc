#include "client/cli/drawing/mask_pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cpp/testing/encode_mask.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 60, kHeight = 40;
const cv::Rect kPart(12, 9, 21, 17);

// A ring: one part with a hole.
cv::Mat Ring() {
  cv::Mat mask(kHeight, kWidth, CV_8UC1, cv::Scalar(0));
  mask(kPart) = 255;
  mask(cv::Rect(18, 14, 6, 5)) = 0;
  return mask;
}

std::string PngOf(const cv::Mat& pixels) { return Encoded(pixels.clone()); }

Detection AsRuns() {
  const cv::Mat ring = Ring();
  Detection item;
  item.mask = EncodeMask(kHeight, kWidth, {ring.data, ring.data + ring.total()});
  return item;
}

Detection AsPicture() {
  Detection item;
  item.mask_picture = MaskPicture{
      kPart.x, kPart.y, kPart.width, kPart.height, PngOf(Ring()(kPart)), cv::countNonZero(Ring())};
  return item;
}

// The hole's polygon consists of the mask's pixels around the hole.
Detection AsPolygons() {
  Detection item;
  item.mask_polygons = MaskPolygons{
      .polygons = {{{12, 9, 32, 9, 32, 25, 12, 25}, false}, {{17, 13, 24, 13, 24, 19, 17, 19}, true}},
      .area = cv::countNonZero(Ring())};
  return item;
}

TEST(MaskPixels, AreTheSameInEveryForm) {
  for (const Detection& item : {AsRuns(), AsPicture(), AsPolygons()}) {
    const auto region = MaskPixels(item, kWidth, kHeight);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(cv::Rect(region->x, region->y, region->width, region->height), kPart);
    const cv::Mat expected = Ring()(kPart).clone();
    EXPECT_EQ(region->pixels, std::vector<uint8_t>(expected.data, expected.data + expected.total()));
  }
}

TEST(MaskPixels, AreEmptyForAMaskWithoutPixels) {
  Detection picture, polygons;
  picture.mask_picture.emplace();
  polygons.mask_polygons.emplace();
  for (const Detection& item : {Detection(), picture, polygons}) {
    const auto region = MaskPixels(item, kWidth, kHeight);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_TRUE(region->pixels.empty());
  }
}

void Refuses(const Detection& item, const std::string& words) {
  const auto region = MaskPixels(item, kWidth, kHeight);
  ASSERT_FALSE(region.ok()) << words;
  EXPECT_THAT(std::string(region.status().message()), HasSubstr(words));
}

TEST(MaskPixels, RejectMasksThatDoNotFitThePicture) {
  Detection item = AsRuns();
  item.mask->width = kWidth - 1;
  Refuses(item, "expected the picture's size");
  for (const cv::Rect& beyond : {cv::Rect(40, 9, 21, 17), cv::Rect(-1, 9, 21, 17), cv::Rect(12, 9, 0, 17),
                                 cv::Rect(12, 2147483647, 21, 2147483647)}) {
    item = AsPicture();
    item.mask_picture->x = beyond.x;
    item.mask_picture->y = beyond.y;
    item.mask_picture->width = beyond.width;
    item.mask_picture->height = beyond.height;
    Refuses(item, "is not within the picture, 60x40");
  }
  for (const std::string& png : {std::string(), std::string("no PNG, but long enough for a header"),
                                 PngOf(Ring()), Encoded(PlainPicture(kPart.width, kPart.height))}) {
    item = AsPicture();
    item.mask_picture->png = png;
    Refuses(item, "not a grey PNG of 21x17 pixels");
  }
  item = AsPolygons();
  item.mask_polygons->polygons[0].points.pop_back();
  Refuses(item, "has 7 numbers; expected x and y in turn");
  item = AsPolygons();
  item.mask_polygons->polygons[1].points[2] = kWidth;
  Refuses(item, "has the point 60,13, which is outside the picture, 60x40");
}

}  // namespace
}  // namespace saccade::client
