#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "server/core/testing/failing_allocations.h"
#include "server/logging/log_writer.h"

namespace saccade::server {
namespace {

TEST(LogWriterMemoryTest, ALineForWhichThereIsNoMemoryIsNotWaitedFor) {
  if (!testing::FailAllocationsFrom(SIZE_MAX)) GTEST_SKIP() << "allocations cannot be made to fail";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int refused = 0;
  {
    LogWriter writer({.fd = ends[1]});
    // The lines are so short that only the queue needs memory for them.
    testing::FailAllocationsFrom(256);
    for (int i = 0; i < 100; ++i) {
      try {
        writer.Write("line\n");
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
    testing::FailAllocationsFrom(SIZE_MAX);
    EXPECT_GT(refused, 0);
    EXPECT_TRUE(writer.Flush(absl::Seconds(30)));
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace saccade::server
