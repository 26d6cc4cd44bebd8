#include "models/layers/workspace_choice.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace saccade::models {
namespace {

constexpr int64_t kResultBytes = 400;

// Ways of a layer with a result of kResultBytes, and what they allocate.
class WayWithinTest : public ::testing::Test {
 protected:
  // A way that allocates so many bytes beside its result, and `first` more in its first call.
  LayerFunction Way(int64_t bytes, int64_t first = 0) {
    return [this, bytes, first]() mutable {
      ++calls_;
      allocated_ += kResultBytes + bytes + first;
      first = 0;
      return at::empty({kResultBytes / 4}, at::kFloat);
    };
  }

  LayerFunction Throwing() {
    return []() -> at::Tensor { throw std::runtime_error("CUDA out of memory"); };
  }

  size_t Within(int64_t bound, const std::vector<LayerFunction>& ways) {
    return WayWithin(bound, ways, [this] { return allocated_; }).way;
  }

  int64_t allocated_ = 12345;
  int calls_ = 0;
};

TEST_F(WayWithinTest, TheFirstOneThatTakesLittleIsChosen) {
  EXPECT_EQ(Within(1000, {Way(1000), Way(0)}), 0u);
  EXPECT_EQ(calls_, 3);  // the other one is not tried
  EXPECT_EQ(Within(1000, {Way(1001), Way(1000), Way(0)}), 1u);
  EXPECT_EQ(Within(1000, {Way(1001), Way(5000), Way(20)}), 2u);
}

TEST_F(WayWithinTest, TheFirstCallDoesNotCount) { EXPECT_EQ(Within(1000, {Way(10, 1 << 20), Way(0)}), 0u); }

TEST_F(WayWithinTest, IfAllTakeMuchTheLeastIsChosen) {
  EXPECT_EQ(Within(10, {Way(3000), Way(1000), Way(2000)}), 1u);
}

TEST_F(WayWithinTest, AWayThatThrowsIsNotChosenUnlessAllDo) {
  EXPECT_EQ(Within(10, {Throwing(), Way(3000), Throwing()}), 1u);
  EXPECT_EQ(Within(10, {Way(3000), Throwing()}), 0u);
  EXPECT_EQ(Within(10, {Throwing(), Throwing()}), 0u);
}

TEST(WorkspaceChoice, IsMadeOnceForAShape) {
  WorkspaceChoice choice;
  int made = 0;
  const auto choose = [&] { return WayChoice{.way = static_cast<size_t>(++made)}; };
  EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 1u);
  EXPECT_EQ(choice.Get({2, 3, 8, 8}, choose), 2u);
  EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 1u);
  EXPECT_EQ(made, 2);
  // The number of remembered shapes is bounded.
  for (int64_t side = 1; side <= 1000; ++side) choice.Get({1, 3, side, side}, choose);
  EXPECT_GT(choice.Get({2, 3, 8, 8}, choose), 2u);
}

TEST_F(WayWithinTest, AWayThatLacksMemoryForAMomentIsTriedOnceMore) {
  WorkspaceChoice choice;
  int lacking = 1;
  int tries = 0;
  const LayerFunction lacks = [&, way = Way(0)] {
    ++tries;
    if (lacking-- > 0) throw std::runtime_error("CUDA out of memory");
    return way();
  };
  const auto choose = [&] { return WayWithin(10, {lacks, Way(5)}, [this] { return allocated_; }); };
  EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 1u);
  EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 0u);
  // One that lacks memory each time is tried twice.
  lacking = 1000;
  tries = 0;
  for (int call = 0; call < 5; ++call) EXPECT_EQ(choice.Get({2, 3, 8, 8}, choose), 1u);
  EXPECT_EQ(tries, 2);
}

TEST_F(WayWithinTest, AWayThatRanIsKeptIfAllLackMemoryTheSecondTime) {
  WorkspaceChoice choice;
  bool is_short = false;
  const LayerFunction lacks = Throwing();
  const LayerFunction some = [&] { return is_short ? lacks() : Way(5)(); };
  const auto choose = [&] { return WayWithin(10, {lacks, some}, [this] { return allocated_; }); };
  EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 1u);
  is_short = true;
  for (int call = 0; call < 3; ++call) EXPECT_EQ(choice.Get({1, 3, 8, 8}, choose), 1u);
}

TEST_F(WayWithinTest, AnotherErrorIsNoReasonToTryAgain) {
  const LayerFunction refuses = []() -> at::Tensor { throw std::runtime_error("no engine"); };
  EXPECT_TRUE(WayWithin(10, {refuses, Way(0)}, [this] { return allocated_; }).settled);
}

}  // namespace
}  // namespace saccade::models
