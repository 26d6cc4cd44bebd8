#include "models/tasks/mask_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "models/tasks/merge_tiles.h"

namespace saccade::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

// A grid of 2 x 3 cells of 4 x 2 pixels from (2, 1). Its centres are at x = 4, 8, 12 and y = 2, 4.
Detection Framed(float x_min, float y_min, float x_max, float y_max) {
  Detection one{.x_min = x_min, .y_min = y_min, .x_max = x_max, .y_max = y_max, .mask = {0, 1, 0, 1, 0, 1}};
  one.frame = {.x = 2, .y = 1, .cell_width = 4, .cell_height = 2, .columns = 3, .rows = 2};
  return one;
}

TEST(PasteFrame, InterpolatesBetweenCentresAndEndsAtTheBox) {
  // Pixels 4 to 8 have their centres in the box, and so has row 2, whose centre is a quarter of the way down.
  const MaskRegion region = PasteMask(Framed(3.6F, 1.9F, 8.6F, 2.9F), 28, 10, 20);
  EXPECT_EQ(region.x, 4);
  EXPECT_EQ(region.y, 2);
  EXPECT_EQ(region.width, 5);
  EXPECT_EQ(region.height, 1);
  EXPECT_THAT(region.values, ElementsAre(0.3125F, 0.4375F, 0.5625F, 0.6875F, 0.6875F));
}

TEST(PasteFrame, RepeatsTheOutermostCellsAndStaysInThePicture) {
  const MaskRegion region = PasteMask(Framed(0, 0, 20, 10), 28, 3, 5);
  EXPECT_EQ(region.width, 5);
  EXPECT_EQ(region.height, 3);
  // Left of and above the first centre its cell alone counts.
  EXPECT_FLOAT_EQ(region.values[0], 0);
  EXPECT_FLOAT_EQ(region.values[3], 0);
}

TEST(PasteFrame, IsEmptyForABoxWithoutPixels) {
  EXPECT_TRUE(PasteMask(Framed(3.6F, 2, 4.4F, 5), 28, 10, 20).values.empty());
  EXPECT_TRUE(PasteMask(Framed(30, 2, 34, 5), 28, 10, 20).values.empty());
}

TEST(PasteFrame, RejectsAMaskThatDoesNotFitItsFrame) {
  Detection one = Framed(0, 0, 10, 5);
  one.mask.pop_back();
  EXPECT_TRUE(PasteMask(one, 28, 10, 20).values.empty());
}

TEST(MaskOverBox, InterpolatesAtTheCentresOfTheBoxsCells) {
  // Cells of 4 x 2 pixels whose centres are those of the frame's first two columns.
  EXPECT_THAT(MaskOverBox(Framed(2, 1, 10, 5), 2), ElementsAre(0, 1, 1, 0));
  Detection plain{.mask = {1, 2, 3, 4}};
  EXPECT_THAT(MaskOverBox(plain, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(MaskOverBox(Detection{}, 2).empty());
}

TEST(MergeTiles, MovesFramesWithTheirTile) {
  const std::vector<Tile> tiles = {{.x = 0, .y = 0, .width = 40, .height = 20},
                                   {.x = 30, .y = 0, .width = 40, .height = 20}};
  std::vector<TaskResult> results = {
      Detections{.mask_side = 28, .height = 20, .width = 40},
      Detections{.items = {Framed(12, 2, 20, 5)}, .mask_side = 28, .height = 20, .width = 40}};
  const auto whole = std::get<Detections>(MergeTiles(std::move(results), tiles, {20, 70}));
  ASSERT_EQ(whole.items.size(), 1);
  EXPECT_FLOAT_EQ(whole.items[0].x_min, 42);
  EXPECT_FLOAT_EQ(whole.items[0].frame.x, 32);
  EXPECT_EQ(whole.items[0].frame.columns, 3);
}

TEST(MergeTiles, PutsFramedMasksOfACutObjectTogether) {
  const std::vector<Tile> tiles = {{.x = 0, .y = 0, .width = 40, .height = 20},
                                   {.x = 30, .y = 0, .width = 40, .height = 20}};
  // One object from 20 to 60, of which each tile shows a part, all of it covered.
  const auto part = [](float x_min, float x_max) {
    Detection one{
        .x_min = x_min, .y_min = 4, .x_max = x_max, .y_max = 16, .score = 0.9F, .label = 1, .mask = {}};
    one.frame = {.x = 0, .y = 0, .cell_width = 4, .cell_height = 4, .columns = 10, .rows = 5};
    one.mask.assign(50, 1.0F);
    return one;
  };
  std::vector<TaskResult> results = {
      Detections{.items = {part(20, 40)}, .mask_side = 8, .height = 20, .width = 40},
      Detections{.items = {part(0, 30)}, .mask_side = 8, .height = 20, .width = 40}};
  const auto whole = std::get<Detections>(MergeTiles(std::move(results), tiles, {20, 70}));
  ASSERT_EQ(whole.items.size(), 1);
  EXPECT_FLOAT_EQ(whole.items[0].x_min, 20);
  EXPECT_FLOAT_EQ(whole.items[0].x_max, 60);
  EXPECT_EQ(whole.items[0].frame.columns, 0);
  ASSERT_EQ(whole.items[0].mask.size(), 64);
  EXPECT_THAT(whole.items[0].mask, Each(Ge(0.99F)));
}

}  // namespace
}  // namespace saccade::models
