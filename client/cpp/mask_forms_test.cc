// Tests of detections whose masks are PNGs or polygons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;

TEST(Client, ReadsMasksInTheRequestedForm) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    Detections answer;
    Detection& item = answer.items.emplace_back();
    if (request.detect.mask_form == MaskForm::kPng) item.mask_picture = MaskPicture{1, 2, 3, 4, "png", 5};
    if (request.detect.mask_form == MaskForm::kPolygons)
      item.mask_polygons = MaskPolygons{.polygons = {{{1, 2, 3, 4}, false}, {{5, 6}, true}}, .area = 7};
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  const auto picture = client->Detect("rcnn", "x", {.mask_form = MaskForm::kPng});
  ASSERT_TRUE(picture.ok()) << picture.status();
  ASSERT_TRUE(picture->items.at(0).mask_picture.has_value());
  EXPECT_FALSE(picture->items[0].mask.has_value());
  EXPECT_EQ(picture->items[0].mask_picture->y, 2);
  EXPECT_EQ(picture->items[0].mask_picture->height, 4);
  EXPECT_EQ(picture->items[0].mask_picture->png, "png");
  EXPECT_EQ(picture->items[0].mask_picture->area, 5);
  const auto around = client->Detect("rcnn", "x", {.mask_form = MaskForm::kPolygons});
  ASSERT_TRUE(around.ok()) << around.status();
  ASSERT_TRUE(around->items.at(0).mask_polygons.has_value());
  const MaskPolygons& polygons = *around->items[0].mask_polygons;
  EXPECT_EQ(polygons.area, 7);
  ASSERT_EQ(polygons.polygons.size(), 2U);
  EXPECT_THAT(polygons.polygons[0].points, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(polygons.polygons[0].hole);
  EXPECT_TRUE(polygons.polygons[1].hole);
}

}  // namespace
}  // namespace saccade::client
