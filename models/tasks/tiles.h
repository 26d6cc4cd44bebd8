// Cuts a large picture into overlapping tiles of one size. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "models/api/placement.h"

namespace saccade::models {

// How a picture is cut: squares of `size` pixels, of which neighbours share `overlap` pixels or more.
struct TileRules {
  int64_t size = 0;
  int64_t overlap = 0;

  friend bool operator==(const TileRules&, const TileRules&) = default;
};

// Pixels of the picture.
struct Tile {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;

  friend bool operator==(const Tile&, const Tile&) = default;
};

// The largest side of a tile.
inline constexpr int64_t kMaxTileSize = int64_t{1} << 24;

// Whether 1 <= size <= kMaxTileSize and 0 <= overlap <= size / 2: a tile then shares pixels with its
// neighbours alone.
bool IsValid(const TileRules& rules);

// The number of tiles of a picture. REQUIRES: IsValid(rules), and sides of 1 to 2^31.
int64_t CountTiles(Size picture, const TileRules& rules);

// The tiles, row by row. All have the same size: that of the rules, or the picture's where that is smaller.
// The last of each row and column is moved to the picture's border, and so overlaps its neighbour by more.
// REQUIRES: as CountTiles(), and that the tiles fit into memory.
std::vector<Tile> TilesOf(Size picture, const TileRules& rules);

}  // namespace saccade::models
