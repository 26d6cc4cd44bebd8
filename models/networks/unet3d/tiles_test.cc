#include "models/networks/unet3d/tiles.h"

#include <gtest/gtest.h>

#include <vector>

namespace saccade::models {
namespace {

// Checks that every position lies in one core, and that windows contain their cores, extend by the halo or to
// the edge, and have one size.
void ExpectCover(const VolumeSides& sides, const VolumeSides& longest, int64_t multiple, int64_t halo) {
  const Tiling tiling(sides, longest, multiple);
  std::vector<int> seen(static_cast<size_t>(Positions(sides)));
  const VolumeSides window_size = tiling.Around(tiling.Core(0), halo).size;
  for (int64_t i = 0; i < tiling.count(); ++i) {
    const Part core = tiling.Core(i);
    const Part window = tiling.Around(core, halo);
    EXPECT_EQ(window.size, window_size);
    for (size_t axis = 0; axis < 3; ++axis) {
      EXPECT_GE(core.size[axis], 1);
      EXPECT_TRUE(longest[axis] == 0 || core.size[axis] < longest[axis] + multiple);
      EXPECT_EQ(core.begin[axis] % multiple, 0);
      EXPECT_EQ(window.begin[axis] % multiple, 0);
      const int64_t core_end = core.begin[axis] + core.size[axis];
      const int64_t window_end = window.begin[axis] + window.size[axis];
      EXPECT_TRUE(window.begin[axis] == 0 || window.begin[axis] <= core.begin[axis] - halo);
      EXPECT_TRUE(window_end == sides[axis] || window_end >= core_end + halo);
      EXPECT_LE(window_end, sides[axis]);
    }
    for (int64_t d = 0; d < core.size[0]; ++d) {
      for (int64_t h = 0; h < core.size[1]; ++h) {
        for (int64_t w = 0; w < core.size[2]; ++w) {
          const int64_t line = (core.begin[0] + d) * sides[1] + core.begin[1] + h;
          ++seen[static_cast<size_t>(line * sides[2] + core.begin[2] + w)];
        }
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  EXPECT_EQ(tiling.Computed(halo), tiling.count() * Positions(window_size));
}

TEST(Tiling, CoversEveryPositionOnce) {
  for (const VolumeSides& sides : {VolumeSides{4, 4, 4}, {8, 44, 52}, {12, 36, 100}, {20, 8, 4}}) {
    for (const int64_t longest : {0, 2, 5, 8, 16, 33, 4096}) {
      for (const int64_t halo : {2, 4}) ExpectCover(sides, {longest, longest, longest}, 2, halo);
      ExpectCover(sides, {0, longest, longest}, 4, 12);
    }
  }
  ExpectCover({1, 32, 40}, {8, 8, 8}, 2, 2);  // a plane
  ExpectCover({9, 32, 40}, {0, 8, 8}, 4, 12);
}

TEST(Tiling, CutsEvenly) {
  const Tiling tiling({52, 800, 800}, {96, 96, 96}, 2);
  EXPECT_EQ(tiling.count(), 81);
  EXPECT_EQ(tiling.Core(0).size, (VolumeSides{52, 90, 90}));
  EXPECT_EQ(tiling.Core(80), (Part{.begin = {0, 720, 720}, .size = {52, 80, 80}}));
  EXPECT_EQ(tiling.Around(tiling.Core(80), 2), (Part{.begin = {0, 706, 706}, .size = {52, 94, 94}}));
}

// The last decoder needs the first encoder's result again: its window must lie within the wider one, at least
// two positions from the wider one's cut edges.
TEST(Tiling, WiderWindowsHoldNarrowerOnes) {
  const VolumeSides sides = {20, 34, 50};
  for (const int64_t longest : {2, 4, 6, 10, 16}) {
    const Tiling tiling(sides, {longest, longest, longest}, 2);
    for (int64_t i = 0; i < tiling.count(); ++i) {
      const Part narrow = tiling.Around(tiling.Core(i), 2);
      const Part wide = tiling.Around(tiling.Core(i), 4);
      const Part within = narrow.From(wide);
      for (size_t axis = 0; axis < 3; ++axis) {
        EXPECT_GE(within.begin[axis], wide.begin[axis] == 0 ? 0 : 2);
        const int64_t behind = wide.size[axis] - within.begin[axis] - within.size[axis];
        EXPECT_GE(behind, wide.begin[axis] + wide.size[axis] == sides[axis] ? 0 : 2);
      }
    }
  }
}

TEST(Part, IsSeenFromElsewhere) {
  const Part part{.begin = {4, 6, 8}, .size = {2, 4, 6}};
  EXPECT_EQ(part.From({.begin = {2, 2, 2}, .size = {8, 8, 12}}),
            (Part{.begin = {2, 4, 6}, .size = {2, 4, 6}}));
  EXPECT_EQ(part.Over({1, 2, 2}), (Part{.begin = {4, 3, 4}, .size = {2, 2, 3}}));
}

}  // namespace
}  // namespace saccade::models
