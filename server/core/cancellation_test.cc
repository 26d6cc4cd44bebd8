#include "server/core/cancellation.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(CancellationTest, APartEndsWithTheWhole) {
  const auto whole = std::make_shared<Cancellation>();
  const auto part = std::make_shared<Cancellation>(whole);
  const Cancellation part_of_part(part);
  EXPECT_FALSE(part_of_part.cancelled());
  whole->Cancel();
  EXPECT_TRUE(part->cancelled());
  EXPECT_TRUE(part_of_part.cancelled());
}

TEST(CancellationTest, TheWholeGoesOnWithoutAPart) {
  const auto whole = std::make_shared<Cancellation>();
  Cancellation part(whole);
  const Cancellation other(whole);
  part.Cancel();
  EXPECT_TRUE(part.cancelled());
  EXPECT_FALSE(whole->cancelled());
  EXPECT_FALSE(other.cancelled());
}

TEST(CancellationTest, OfNothingItIsTheWhole) {
  Cancellation alone(nullptr);
  EXPECT_FALSE(alone.cancelled());
  alone.Cancel();
  EXPECT_TRUE(alone.cancelled());
}

}  // namespace
}  // namespace saccade::server
