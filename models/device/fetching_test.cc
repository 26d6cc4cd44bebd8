#include "models/device/fetching.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/device/pinned.h"
#include "models/testing/fake_host_allocator.h"
#include "models/testing/fake_streams.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using testing::FakeStreams;
using ::testing::IsEmpty;

// A result [2, 3, 4, 5] in bfloat16, channels-last.
at::Tensor Result() {
  return at::arange(120, at::kBFloat16).reshape({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
}

class FetchingTest : public ::testing::Test {
 protected:
  const c10::Stream stream_ = FakeStreams::StreamOf(FakeStreams::kComputing);
  testing::FakeHostAllocator page_locked_;
  FakeStreams streams_;
};

TEST_F(FetchingTest, ResultsAreCopiedToPageLockedMemoryAndWaitedForOnce) {
  const at::Tensor x = Result();
  const Fetching first(x, stream_);
  const Fetching second(x.mul(2), stream_);
  EXPECT_THAT(streams_.log(), ElementsAre("event 1 on 1", "event 2 on 1"));
  x.zero_();  // later work on the stream
  const at::Tensor fetched = first.Wait();
  EXPECT_TRUE(fetched.equal(Result()));
  EXPECT_EQ(fetched.scalar_type(), at::kBFloat16);
  EXPECT_EQ(fetched.strides(), Result().strides());
  EXPECT_TRUE(IsPinned(fetched));
  EXPECT_TRUE(second.Wait().equal(Result().mul(2)));
  EXPECT_THAT(streams_.log(), ElementsAre("event 1 on 1", "event 2 on 1", "thread waits for event 1",
                                          "thread waits for event 2"));
  EXPECT_EQ(page_locked_.allocated, 2);
}

TEST_F(FetchingTest, PartsOfAResultAreFetched) {
  const at::Tensor x = Result();
  EXPECT_TRUE(Fetching(x.narrow(0, 1, 1), stream_).Wait().equal(x.narrow(0, 1, 1)));
  EXPECT_TRUE(Fetching(x.narrow(1, 1, 2), stream_).Wait().equal(x.narrow(1, 1, 2))) << "not dense";
  EXPECT_TRUE(Fetching(x.permute({3, 0, 2, 1}), stream_).Wait().equal(x.permute({3, 0, 2, 1})));
  EXPECT_EQ(Fetching(x.narrow(0, 0, 0), stream_).Wait().numel(), 0);
}

TEST_F(FetchingTest, WithoutPageLockedMemoryTheCopyIsMadeAtOnce) {
  page_locked_.fails = true;
  const Fetching result(Result(), stream_);
  EXPECT_THAT(streams_.log(), IsEmpty());
  EXPECT_TRUE(result.Wait().equal(Result()));
}

TEST_F(FetchingTest, AResultOnTheCpuIsNotCopied) {
  const at::Tensor x = Result();
  EXPECT_TRUE(Fetching(x).Wait().is_same(x));
  EXPECT_THAT(streams_.log(), IsEmpty());
  EXPECT_EQ(page_locked_.allocated, 0);
}

}  // namespace
}  // namespace saccade::models
