#include "models/device/copy_stream.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "models/testing/fake_streams.h"

namespace saccade::models {
namespace {

using testing::FakeStreams;

TEST(CopyStreamTest, TheThreadsStreamWaitsForTheCopyAndTheThreadDoesNot) {
  const FakeStreams streams;
  const CopyStream copies(FakeStreams::Gpu());
  const at::Tensor batch = at::ones({2, 3});
  const at::Tensor sent = copies.Run([&] {
    streams.log().push_back("copy on " + std::to_string(streams.current()));
    return batch;
  });
  EXPECT_TRUE(sent.is_same(batch));
  EXPECT_EQ(streams.current(), FakeStreams::kComputing);
  EXPECT_THAT(streams.log(), ::testing::ElementsAre("copy on 9", "event 1 on 9", "1 waits for event 1",
                                                    "memory is kept for 1"));
}

TEST(CopyStreamTest, AfterAFailedCopyTheThreadComputesOnItsOwnStream) {
  const FakeStreams streams;
  const CopyStream copies(FakeStreams::Gpu());
  EXPECT_THROW(copies.Run([]() -> at::Tensor { throw std::runtime_error("CUDA error: out of memory"); }),
               std::runtime_error);
  EXPECT_EQ(streams.current(), FakeStreams::kComputing);
  EXPECT_THAT(streams.log(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace saccade::models
