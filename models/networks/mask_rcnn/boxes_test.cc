#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "models/networks/mask_rcnn/anchors.h"
#include "models/networks/mask_rcnn/box.h"

namespace saccade::models {
namespace {

// Expected values are from torchvision's AnchorGenerator(((32,), (64,), ...), ((0.5, 1, 2),) * 5).
TEST(Anchors, AreTorchvisions) {
  const Anchors finest(0, {4, 4});
  EXPECT_EQ(finest.At(0, 0, 0), (Box{-23, -11, 23, 11}));
  EXPECT_EQ(finest.At(0, 0, 1), (Box{-16, -16, 16, 16}));
  EXPECT_EQ(finest.At(2, 3, 2), (Box{12 - 11, 8 - 23, 12 + 11, 8 + 23}));
  const Anchors coarsest(4, {64, 65});
  EXPECT_EQ(coarsest.At(1, 1, 0), (Box{65 - 362, 64 - 181, 65 + 362, 64 + 181}));
}

TEST(Anchors, StandAsFarApartAsTheLevelIsCoarse) {
  EXPECT_EQ(SpacingOf(2, {800, 1344}, {50, 84}, false), (Size{16, 16}));
  // A bucket that is not a multiple of 32 rounds down, as in torchvision's generator.
  EXPECT_EQ(SpacingOf(3, {100, 100}, {4, 4}, false), (Size{25, 25}));
  EXPECT_EQ(SpacingOf(3, {100, 100}, {4, 4}, true), (Size{32, 32}));
}

TEST(Box, MovesByTheHeadsNumbers) {
  const std::array<float, 4> deltas = {0.5F, -1, std::log(2.0F), 100};
  const Box moved = Moved({10, 20, 30, 60}, deltas.data(), kProposalWeights);
  // The centre moves from (20, 40) to (30, 0); the width grows from 20 to 40, the height from 40 to its
  // maximum, 40 * 1000 / 16.
  EXPECT_NEAR(moved.x_min, 10, 1e-4);
  EXPECT_NEAR(moved.x_max, 50, 1e-4);
  EXPECT_NEAR(moved.y_min, -1250, 1e-2);
  EXPECT_NEAR(moved.y_max, 1250, 1e-2);
  const std::array<float, 4> weighted = {5, -10, 5 * std::log(2.0F), 0};
  const Box detected = Moved({10, 20, 30, 60}, weighted.data(), kDetectionWeights);
  EXPECT_NEAR(detected.x_min, 10, 1e-4);
  EXPECT_NEAR(detected.x_max, 50, 1e-4);
  EXPECT_NEAR(detected.y_min, -20, 1e-4);
  EXPECT_NEAR(detected.y_max, 20, 1e-4);
}

TEST(Box, IsClippedAndResized) {
  EXPECT_EQ(Clipped({-3, 2, 50, 70}, {60, 40}), (Box{0, 2, 40, 60}));
  EXPECT_EQ(Resized({5, 6, 20, 30}, {60, 40}, {120, 20}), (Box{2.5F, 12, 10, 60}));
  // In float32, 7 * (114 / 7) is a little more than 114.
  EXPECT_EQ(Resized({0, 0, 7, 3}, {3, 7}, {100, 114}), (Box{0, 0, 114, 100}));
  EXPECT_TRUE(IsAtLeast({1, 1, 2, 3}, 1));
  EXPECT_FALSE(IsAtLeast({1, 1, 2, 1.5F}, 1));
}

}  // namespace
}  // namespace saccade::models
