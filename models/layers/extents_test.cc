#include "models/layers/extents.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace saccade::models {
namespace {

const std::vector<Window> kWindows = {{.kernel = 7, .stride = 2, .padding = 3},
                                      {.kernel = 3, .stride = 2, .padding = 1},
                                      {.kernel = 3, .stride = 2, .padding = 1, .ceil = true},
                                      {.kernel = 2, .stride = 2, .ceil = true},
                                      {.kernel = 1, .stride = 4},
                                      {.kernel = 3, .padding = 2, .dilation = 2},
                                      {.kernel = 5}};

at::Tensor Valid(const std::vector<Size>& sizes) { return Extents(sizes).AsValid(); }

TEST(ExtentsTest, AWindowIsCountedOnTheDeviceAsItIsHere) {
  std::vector<Size> sizes;
  for (int64_t side = 1; side < 80; ++side) sizes.push_back({side, 160 - side});
  for (const Window& first : kWindows) {
    for (const Window& second : kWindows) {
      const Extents kept = Extents(sizes).With(Valid(sizes)).After(first).After(second);
      EXPECT_TRUE(kept.AsValid().equal(Extents(sizes).After(first).After(second).AsValid()));
    }
  }
}

TEST(ExtentsTest, OtherPicturesGoTheSameWay) {
  const Extents map = Extents({{5, 9}}).After(kWindows[0]).After(kWindows[5]).After(kWindows[2]);
  const Extents pictures({{33, 64}, {64, 1}});
  EXPECT_EQ(map.Again(pictures).sizes(),
            pictures.After(kWindows[0]).After(kWindows[5]).After(kWindows[2]).sizes());
}

TEST(ExtentsTest, ZeroesTheSameBeyondEitherKind) {
  const std::vector<Size> sizes = {{3, 5}, {4, 1}, {1, 6}, {4, 6}};
  // Padding may hold any value; multiplying infinity by zero would not clear it.
  const auto map = [] {
    return at::full({4, 2, 4, 6}, std::numeric_limits<float>::infinity())
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  at::Tensor here = map();
  at::Tensor there = map();
  Extents(sizes).ZeroBeyond(here);
  // The sizes given to the constructor are ignored.
  Extents(std::vector<Size>(4, Size{2, 2})).With(Valid(sizes)).ZeroBeyond(there);
  EXPECT_TRUE(here.equal(there));
  EXPECT_EQ(here.isinf().sum().item<int64_t>(), 2 * (15 + 4 + 6 + 24));
}

TEST(ExtentsTest, AnyNumberFillsWhatLiesBeyond) {
  at::Tensor map = at::full({2, 1, 3, 3}, 5.0);
  Extents({{2, 1}, {3, 3}}).FillBeyond(map, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(map.isinf().sum().item<int64_t>(), 7);
  EXPECT_EQ(map[0][0][1][0].item<float>(), 5);
}

}  // namespace
}  // namespace saccade::models
