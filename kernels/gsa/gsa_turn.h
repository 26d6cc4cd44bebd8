// Conversion between the CPU plan's two layouts of a sample's channels: maps [channels][positions], and for
// axial attention blocks [position along the line][channel][line] of kLines columns or rows.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/common/arena.h"
#include "kernels/gsa/gsa_lines.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {

// A map whose positions are contiguous rows of `width`; channels are `channel_row` apart. Reading a block may
// continue for kLines rows, and as many positions, after the last.
struct GsaGrid {
  int64_t height;
  int64_t width;
  int64_t channel_row;
};

// Loads lines [line, line + kLines) along the axis as a block. The content of lines that do not exist is
// unspecified.
template <typename A>
void LoadLines(const TileCode<A>& code, const GsaGrid& grid, int axis, const A* map, int64_t channels,
               int64_t line, A* block) {
  for (int64_t c = 0; c < channels; ++c) {
    const A* from = map + c * grid.channel_row;
    A* to = block + c * kLines;
    if (axis == 1) {
      code.transpose(from + line * grid.width, kLines, RoundUp(grid.width, kRowPadding), grid.width, to,
                     channels * kLines);
      continue;
    }
    for (int64_t y = 0; y < grid.height; ++y) {
      std::memcpy(to + y * channels * kLines, from + y * grid.width + line, kLines * sizeof(A));
    }
  }
}

// The reverse for existing columns, scaled and shifted by channel if `scale` is not null.
template <typename A>
void StoreColumns(const GsaGrid& grid, const A* block, int64_t channels, const A* scale, const A* shift,
                  int64_t line, A* map) {
  const int64_t lines = std::min(kLines, grid.width - line);
  for (int64_t c = 0; c < channels; ++c) {
    const A factor = scale == nullptr ? A{1} : scale[c];
    const A term = shift == nullptr ? A{0} : shift[c];
    for (int64_t y = 0; y < grid.height; ++y) {
      const A* from = block + (y * channels + c) * kLines;
      A* to = map + c * grid.channel_row + y * grid.width + line;
      if (lines == kLines) {  // constant length, so the compiler vectorises it
        for (int64_t l = 0; l < kLines; ++l) to[l] = from[l] * factor + term;
      } else {
        for (int64_t l = 0; l < lines; ++l) to[l] = from[l] * factor + term;
      }
    }
  }
}

// The reverse for existing rows; `rows` has room for kLines padded rows.
template <typename A>
void StoreRows(const TileCode<A>& code, const GsaGrid& grid, const A* block, int64_t channels, int64_t line,
               A* rows, A* map) {
  const int64_t padded = RoundUp(grid.width, kRowPadding);
  const int64_t lines = std::min(kLines, grid.height - line);
  for (int64_t c = 0; c < channels; ++c) {
    code.transpose(block + c * kLines, padded, kLines, channels * kLines, rows, padded);
    for (int64_t l = 0; l < lines; ++l) {
      std::memcpy(map + c * grid.channel_row + (line + l) * grid.width, rows + l * padded,
                  grid.width * sizeof(A));
    }
  }
}

}  // namespace saccade::kernels
