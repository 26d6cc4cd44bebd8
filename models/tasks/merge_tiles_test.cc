#include "models/tasks/merge_tiles.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "models/testing/thread_seconds.h"

namespace saccade::models {
namespace {

constexpr Size kPicture{100, 160};
constexpr TileRules kRules{.size = 100, .overlap = 40};

struct Object {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;
  float score = 0;
  int64_t label = 0;
};

// What a perfect detector finds in a tile: the part of each object that the tile shows.
std::vector<TaskResult> Seen(const std::vector<Object>& objects, const std::vector<Tile>& tiles,
                             int64_t mask_side = 0) {
  std::vector<TaskResult> results;
  for (const Tile& tile : tiles) {
    Detections found{.mask_side = mask_side, .height = tile.height, .width = tile.width};
    for (const Object& object : objects) {
      const auto x = static_cast<float>(tile.x);
      const auto y = static_cast<float>(tile.y);
      Detection part{.x_min = std::max(object.x_min - x, 0.0F),
                     .y_min = std::max(object.y_min - y, 0.0F),
                     .x_max = std::min(object.x_max - x, static_cast<float>(tile.width)),
                     .y_max = std::min(object.y_max - y, static_cast<float>(tile.height)),
                     .score = object.score + static_cast<float>(tile.x) / 1000,
                     .label = object.label,
                     .mask = {}};
      if (part.x_max - part.x_min < 2 || part.y_max - part.y_min < 2) continue;
      part.mask.assign(static_cast<size_t>(mask_side * mask_side), 1.0F);
      found.items.push_back(std::move(part));
    }
    results.emplace_back(std::move(found));
  }
  return results;
}

Detections Merged(const std::vector<Object>& objects, Size picture = kPicture, TileRules rules = kRules,
                  int64_t mask_side = 0) {
  const std::vector<Tile> tiles = TilesOf(picture, rules);
  return std::get<Detections>(MergeTiles(Seen(objects, tiles, mask_side), tiles, picture));
}

void ExpectBox(const Detection& found, const Object& object) {
  EXPECT_FLOAT_EQ(found.x_min, object.x_min);
  EXPECT_FLOAT_EQ(found.y_min, object.y_min);
  EXPECT_FLOAT_EQ(found.x_max, object.x_max);
  EXPECT_FLOAT_EQ(found.y_max, object.y_max);
  EXPECT_EQ(found.label, object.label);
}

TEST(MergeTilesTest, AnObjectThatBothTilesShowIsOne) {
  const Object whole{65, 20, 95, 50, 0.5F, 3};
  const Detections found = Merged({whole});
  ASSERT_EQ(found.items.size(), 1u);
  ExpectBox(found.items[0], whole);
  // The second tile starts at 60, so its score was higher.
  EXPECT_FLOAT_EQ(found.items[0].score, 0.56F);
  EXPECT_EQ(found.width, 160);
  EXPECT_EQ(found.height, 100);
}

TEST(MergeTilesTest, AnObjectThatASeamCutsIsPutTogether) {
  const Object across{20, 10, 140, 90, 0.5F, 1};
  const Detections found = Merged({across});
  ASSERT_EQ(found.items.size(), 1u);
  ExpectBox(found.items[0], across);
}

TEST(MergeTilesTest, ThePartThatNoBorderCutsCounts) {
  // The first tile shows its left half alone.
  const Object right{90, 30, 130, 60, 0.5F, 1};
  const Detections found = Merged({right});
  ASSERT_EQ(found.items.size(), 1u);
  ExpectBox(found.items[0], right);
}

TEST(MergeTilesTest, AnObjectInManyTilesIsOne) {
  const Object huge{5, 5, 495, 395, 0.5F, 1};
  const Detections found = Merged({huge}, {400, 500});
  ASSERT_EQ(found.items.size(), 1u);
  ExpectBox(found.items[0], huge);
}

TEST(MergeTilesTest, ClassesAndNeighboursStayApart) {
  const std::vector<Object> objects = {
      {65, 20, 95, 50, 0.9F, 1},
      {66, 21, 95, 50, 0.8F, 2},
      // A small one within a large one of its class, as a hand before a body.
      {20, 5, 140, 95, 0.7F, 4},
      {70, 40, 85, 55, 0.6F, 4},
      {2, 2, 30, 30, 0.5F, 1}};
  const Detections found = Merged(objects);
  ASSERT_EQ(found.items.size(), objects.size());
  for (size_t i = 0; i + 1 < objects.size(); ++i) ExpectBox(found.items[i], objects[i]);
}

TEST(MergeTilesTest, WithoutOverlapNothingIsMerged) {
  EXPECT_EQ(Merged({{40, 10, 120, 60, 0.5F, 1}}, {80, 160}, {.size = 80, .overlap = 0}).items.size(), 2u);
}

TEST(MergeTilesTest, TwoOfOneTileAreNeverMerged) {
  const std::vector<Tile> tiles = TilesOf(kPicture, kRules);
  std::vector<TaskResult> results = Seen({{65, 20, 95, 50, 0.5F, 3}}, tiles);
  // The first tile's model found it twice.
  auto& first = std::get<Detections>(results[0]).items;
  first.push_back(first.front());
  EXPECT_EQ(std::get<Detections>(MergeTiles(std::move(results), tiles, kPicture)).items.size(), 2u);
}

// Thousands of boxes at one place: all pairs of them would be compared, and kept.
TEST(MergeTilesTest, CrowdsTakeLittleTime) {
  constexpr size_t kCrowd = 10'000;
  const std::vector<Object> crowd(kCrowd, {65, 20, 95, 50, 0.5F, 3});
  size_t found = 0;
  EXPECT_LT(testing::ThreadSeconds([&] { found = Merged(crowd).items.size(); }), 3);
  EXPECT_GE(found, kCrowd);
  EXPECT_LT(found, 2 * kCrowd);
}

// Objects of one class beside each other, in more than one row.
TEST(MergeTilesTest, ManyObjectsThatTwoTilesShowAreMerged) {
  std::vector<Object> objects;
  for (int column = 0; column < 3; ++column) {
    for (int row = 0; row < 30; ++row) {
      const auto x = static_cast<float>(62 + 12 * column);
      const auto y = static_cast<float>(2 + 3 * row);
      objects.push_back({x, y, x + 10, y + 2.5F, 0.5F, 3});
    }
  }
  EXPECT_EQ(Merged(objects).items.size(), objects.size());
}

TEST(MergeTilesTest, MasksAreStitched) {
  const Object across{20, 10, 140, 90, 0.5F, 1};
  const std::vector<Tile> tiles = TilesOf(kPicture, kRules);
  constexpr int64_t kSide = 10;
  std::vector<TaskResult> results = Seen({across}, tiles, kSide);
  // The object fills the upper half of the first tile's box and all of the second's.
  auto& mask = std::get<Detections>(results[0]).items[0].mask;
  std::fill(mask.begin() + kSide * kSide / 2, mask.end(), 0.0F);
  const auto found = std::get<Detections>(MergeTiles(std::move(results), tiles, kPicture));
  ASSERT_EQ(found.items.size(), 1u);
  ASSERT_EQ(found.mask_side, kSide);
  const std::vector<float>& whole = found.items[0].mask;
  ASSERT_EQ(whole.size(), static_cast<size_t>(kSide * kSide));
  // Columns of 12 pixels from 20: those before the second tile, which starts at 60, are of the first alone.
  EXPECT_EQ(whole[0], 1);
  EXPECT_EQ(whole[9 * kSide + 0], 0);
  EXPECT_EQ(whole[9 * kSide + 2], 0);
  EXPECT_EQ(whole[9 * kSide + 4], 1);
  EXPECT_EQ(whole[9 * kSide + 9], 1);
}

TEST(MergeTilesTest, KeypointsMoveWithTheirTile) {
  const std::vector<Tile> tiles = TilesOf(kPicture, kRules);
  std::vector<TaskResult> results = Seen({{130, 20, 150, 50, 0.5F, 0}}, tiles);
  std::get<Detections>(results[1]).items[0].keypoints = {{75, 30, 0.9F}};
  const auto found = std::get<Detections>(MergeTiles(std::move(results), tiles, kPicture));
  ASSERT_EQ(found.items.size(), 1u);
  ASSERT_EQ(found.items[0].keypoints.size(), 1u);
  EXPECT_EQ(found.items[0].keypoints[0].x, 135);
  EXPECT_EQ(found.items[0].keypoints[0].y, 30);
}

// The label map of a network that looks `reach` pixels far: the picture's own where it sees far enough.
TEST(MergeTilesTest, MapsAreThoseOfTheWholePictureWhereTheOverlapReaches) {
  constexpr int64_t kReach = 3;
  const Size picture{61, 83};
  const TileRules rules{.size = 24, .overlap = 2 * kReach};
  const std::vector<Tile> tiles = TilesOf(picture, rules);
  std::mt19937 chance(5);
  std::vector<uint8_t> truth(static_cast<size_t>(picture.height * picture.width));
  for (uint8_t& label : truth) label = static_cast<uint8_t>(chance() % 4);
  std::vector<TaskResult> results;
  for (const Tile& tile : tiles) {
    Segmentation part{
        .height = tile.height, .width = tile.width, .labels = {}, .areas = std::vector<int64_t>(5, 0)};
    for (int64_t y = 0; y < tile.height; ++y) {
      for (int64_t x = 0; x < tile.width; ++x) {
        const bool left = tile.x > 0 && x < kReach;
        const bool right = tile.x + tile.width < picture.width && x >= tile.width - kReach;
        const bool top = tile.y > 0 && y < kReach;
        const bool bottom = tile.y + tile.height < picture.height && y >= tile.height - kReach;
        const uint8_t label = truth[static_cast<size_t>((tile.y + y) * picture.width + tile.x + x)];
        part.labels.push_back(left || right || top || bottom ? 4 : label);
      }
    }
    results.emplace_back(std::move(part));
  }
  const auto whole = std::get<Segmentation>(MergeTiles(std::move(results), tiles, picture));
  EXPECT_EQ(whole.labels, truth);
  EXPECT_EQ(whole.areas[4], 0);
  EXPECT_EQ(whole.areas[0] + whole.areas[1] + whole.areas[2] + whole.areas[3],
            picture.height * picture.width);
}

TEST(MergeTilesTest, OfOtherTasksNothingCanBeMerged) {
  EXPECT_TRUE(CanMergeTiles(Task::kDetection));
  EXPECT_TRUE(CanMergeTiles(Task::kSegmentation));
  EXPECT_FALSE(CanMergeTiles(Task::kClassification));
  EXPECT_FALSE(CanMergeTiles(Task::kDepth));
}

}  // namespace
}  // namespace saccade::models
