#include "models/tasks/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace saccade::models {
namespace {

using ::testing::ElementsAre;

TEST(TilesTest, CoverThePictureWithAtLeastTheOverlap) {
  const TileRules rules{.size = 40, .overlap = 10};
  EXPECT_THAT(TilesOf({30, 100}, rules),
              ElementsAre(Tile{0, 0, 40, 30}, Tile{30, 0, 40, 30}, Tile{60, 0, 40, 30}));
  // The last one is moved to the border.
  EXPECT_THAT(TilesOf({40, 75}, rules),
              ElementsAre(Tile{0, 0, 40, 40}, Tile{30, 0, 40, 40}, Tile{35, 0, 40, 40}));
}

TEST(TilesTest, OneTileShowsASmallPicture) {
  EXPECT_THAT(TilesOf({20, 40}, {.size = 40, .overlap = 5}), ElementsAre(Tile{0, 0, 40, 20}));
  EXPECT_THAT(TilesOf({7, 9}, {.size = 40, .overlap = 5}), ElementsAre(Tile{0, 0, 9, 7}));
}

TEST(TilesTest, AreCountedWithoutBeingMade) {
  for (int64_t height = 1; height < 60; height += 3) {
    for (int64_t size = 1; size < 40; size += 4) {
      for (int64_t overlap = 0; overlap <= size / 2; ++overlap) {
        const TileRules rules{.size = size, .overlap = overlap};
        EXPECT_EQ(CountTiles({height, 50}, rules), static_cast<int64_t>(TilesOf({height, 50}, rules).size()));
      }
    }
  }
  EXPECT_EQ(CountTiles({int64_t{1} << 31, int64_t{1} << 31}, {.size = 1}), int64_t{1} << 62);
}

TEST(TilesTest, EveryPixelIsInATile) {
  const std::vector<Tile> tiles = TilesOf({53, 47}, {.size = 20, .overlap = 7});
  for (int64_t y = 0; y < 53; ++y) {
    for (int64_t x = 0; x < 47; ++x) {
      const auto shows = [&](const Tile& tile) {
        return x >= tile.x && x < tile.x + tile.width && y >= tile.y && y < tile.y + tile.height;
      };
      EXPECT_TRUE(std::any_of(tiles.begin(), tiles.end(), shows)) << x << ", " << y;
    }
  }
}

TEST(TilesTest, AnOverlapIsAtMostHalfOfTheSize) {
  EXPECT_TRUE(IsValid({.size = 1}));
  EXPECT_TRUE(IsValid({.size = 64, .overlap = 32}));
  EXPECT_FALSE(IsValid({.size = 64, .overlap = 33}));
  EXPECT_FALSE(IsValid({.size = 0}));
  EXPECT_FALSE(IsValid({.size = -5}));
  EXPECT_FALSE(IsValid({.size = 64, .overlap = -1}));
  EXPECT_TRUE(IsValid({.size = kMaxTileSize}));
  EXPECT_FALSE(IsValid({.size = kMaxTileSize + 1}));
}

}  // namespace
}  // namespace saccade::models
