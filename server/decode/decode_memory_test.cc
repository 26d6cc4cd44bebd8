// The decode threads must not need memory between two jobs: a failed allocation there would end the daemon.
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "gtest/gtest.h"
#include "server/core/testing/failing_allocations.h"
#include "server/decode/decode_queue.h"

namespace saccade::server {
namespace {

TEST(DecodeMemoryTest, JobsAreTakenAndEndedWithoutMemory) {
  if (!testing::FailAllocationsFrom(SIZE_MAX)) GTEST_SKIP() << "no allocation can be made to fail";
  // Names that a string does not hold in itself.
  const std::string models[] = {std::string(100, 'a'), std::string(100, 'b')};
  const std::string clients[] = {std::string(100, 'c'), std::string(100, 'd')};
  DecodeQueue queue(/*max_jobs=*/100, /*max_long_running=*/1);
  for (int i = 0; i < 16; ++i) {
    const DecodeQueue::Order order = {
        .model = models[i % 2], .client = clients[i / 2 % 2], .may_be_long = i / 4 % 2 == 0};
    const auto pushed = queue.Push(order, {.run = [] {}});
    ASSERT_TRUE(pushed.taken);
  }
  int taken = 0;
  bool failed = false;
  testing::FailAllocationsFrom(0);
  try {
    while (auto job = queue.Pop()) {
      ++taken;
      queue.Done(*job, absl::Milliseconds(taken));
    }
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  testing::FailAllocationsFrom(SIZE_MAX);
  EXPECT_FALSE(failed);
  EXPECT_EQ(taken, 16);
  EXPECT_EQ(queue.size(), 0);
}

}  // namespace
}  // namespace saccade::server
