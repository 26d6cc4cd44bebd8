#include "models/tasks/tiles.h"

#include <algorithm>

namespace saccade::models {
namespace {

int64_t CountAlong(int64_t length, const TileRules& rules) {
  if (length <= rules.size) return 1;
  const int64_t step = rules.size - rules.overlap;
  return (length - rules.size + step - 1) / step + 1;
}

int64_t StartOf(int64_t index, int64_t length, const TileRules& rules) {
  const int64_t last = std::max<int64_t>(0, length - rules.size);
  return std::min(index * (rules.size - rules.overlap), last);
}

}  // namespace

bool IsValid(const TileRules& rules) {
  return rules.size >= 1 && rules.overlap >= 0 && rules.overlap <= rules.size / 2 &&
         rules.size <= kMaxTileSize;
}

int64_t CountTiles(Size picture, const TileRules& rules) {
  return CountAlong(picture.height, rules) * CountAlong(picture.width, rules);
}

std::vector<Tile> TilesOf(Size picture, const TileRules& rules) {
  const int64_t rows = CountAlong(picture.height, rules);
  const int64_t columns = CountAlong(picture.width, rules);
  std::vector<Tile> tiles;
  tiles.reserve(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      tiles.push_back({.x = StartOf(column, picture.width, rules),
                       .y = StartOf(row, picture.height, rules),
                       .width = std::min(rules.size, picture.width),
                       .height = std::min(rules.size, picture.height)});
    }
  }
  return tiles;
}

}  // namespace saccade::models
