#include "server/quantize/arguments.h"

#include <gtest/gtest.h>

#include <optional>

namespace saccade::server {
namespace {

// Threads beyond the limit would be stopped together for the rest of each period.
TEST(QuantizeArgumentsTest, TheLimitOfTheContainerCounts) {
  const CoreLimits limits = {64, 1.5};
  EXPECT_EQ(QuantizeThreads(0, limits), 2);
  EXPECT_EQ(QuantizeThreads(5, limits), 5) << "it was asked for";
  EXPECT_EQ(QuantizeThreads(0, {3, std::nullopt}), 3);
}

}  // namespace
}  // namespace saccade::server
