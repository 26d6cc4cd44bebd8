#include "server/catalog/pinned_cores.h"

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

TEST(PinnedCoresTest, ARangeThatIsGivenBackIsTakenAgain) {
  PinnedCores cores(4);
  auto first = cores.Take(2);
  const auto second = cores.Take(1);
  EXPECT_EQ(first->first, 0);
  EXPECT_EQ(second->first, 2);
  first.reset();
  EXPECT_EQ(cores.Take(1)->first, 0);
  const auto pair = cores.Take(2);
  EXPECT_EQ(pair->first, 0);
  EXPECT_EQ(cores.Take(1)->first, 3);
}

TEST(PinnedCoresTest, AFreeRangeMayPassTheLastCore) {
  PinnedCores cores(4);
  auto first = cores.Take(1);
  const auto middle = cores.Take(2);
  first.reset();
  EXPECT_EQ(cores.Take(2)->first, 3);
}

TEST(PinnedCoresTest, WithoutAFreeRangeThoseWithTheFewestModelsAreShared) {
  PinnedCores cores(2);
  const auto all = cores.Take(2);
  const auto one = cores.Take(1);
  const auto other = cores.Take(1);
  EXPECT_EQ(all->first, 0);
  EXPECT_EQ(one->first, 0);
  EXPECT_EQ(other->first, 1);
  const auto more_than_there_are = cores.Take(9);
  EXPECT_EQ(more_than_there_are->first, 0);
  EXPECT_EQ(more_than_there_are->count, 9);
}

}  // namespace
}  // namespace saccade::server
