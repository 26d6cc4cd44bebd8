// Requests and responses over HTTP/2, and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "server/http/testing/http2_fixture.h"

namespace saccade::server {
namespace {

using ::testing::SizeIs;

TEST_F(Http2SessionTest, AnswersWithBodyAndTrailers) {
  Open();
  pipe_->TakeOutput();
  pipe_->Send(Post(1) + DataFrame(1, "hello", true));
  const auto frames = Answers();
  const auto data = OfType(frames, kData);
  ASSERT_THAT(data, SizeIs(1));
  EXPECT_EQ(data[0].payload, "hello");
  const auto heads = OfType(frames, kHeaders);
  ASSERT_THAT(heads, SizeIs(2));
  EXPECT_EQ(heads[0].flags & kEndStream, 0);
  EXPECT_NE(heads[1].flags & kEndStream, 0);
  EXPECT_EQ(handler_.facts.answered, 1);
  EXPECT_EQ(handler_.facts.lost, 0);
  EXPECT_TRUE(pipe_->session()->IsIdle());
}

TEST_F(Http2SessionTest, BodyBeyondTheWindowIsAnError) {
  Open();
  pipe_->TakeOutput();
  std::string bytes = Post(1);
  for (int i = 0; i < 5; ++i) bytes += DataFrame(1, std::string(16384, 'x'), false);
  pipe_->Send(bytes);
  EXPECT_LE(handler_.facts.max_body, Exchange::kFirstBodyBytes);
  const auto resets = OfType(Answers(), kRstStream);
  ASSERT_THAT(resets, SizeIs(1));
  EXPECT_EQ(NumberAt(resets[0].payload, 0, 4), kFlowControlError);
}

TEST_F(Http2SessionTest, AllowedBodyIsGranted) {
  Open();
  pipe_->Send(Post(1, "/large"));
  const auto windows = OfType(Answers(), kWindowUpdate);
  EXPECT_TRUE(std::any_of(windows.begin(), windows.end(), [](const Frame& frame) {
    return frame.stream == 1 && NumberAt(frame.payload, 0, 4) == (1U << 30) - Exchange::kFirstBodyBytes;
  }));
  for (int i = 0; i < 8; ++i) pipe_->Send(DataFrame(1, std::string(16384, 'x'), false));
  pipe_->Send(DataFrame(1, "", true));
  EXPECT_EQ(handler_.facts.max_body, 8 * 16384U);
  EXPECT_EQ(handler_.facts.lost, 0);
}

TEST_F(Http2SessionTest, AnswersFollowTheClientsWindow) {
  Open();
  // A window of 10 bytes for each stream.
  pipe_->Send(SettingsFrame(Setting(4, 10)));
  pipe_->TakeOutput();
  pipe_->Send(Post(1) + DataFrame(1, "hello world, how are you", true));
  auto data = OfType(Answers(), kData);
  ASSERT_THAT(data, SizeIs(1));
  EXPECT_EQ(data[0].payload, "hello worl");
  EXPECT_EQ(handler_.facts.answered, 0);
  pipe_->Send(WindowFrame(1, 100));
  data = OfType(Answers(), kData);
  ASSERT_FALSE(data.empty());
  EXPECT_EQ(data[0].payload, "d, how are you");
  EXPECT_EQ(handler_.facts.answered, 1);
}

TEST_F(Http2SessionTest, AnAnswerCountsAsAnsweredWhenItIsWritten) {
  Open();
  pipe_->TakeOutput();
  pipe_->LimitRoom(20);
  pipe_->Send(Get(1));
  EXPECT_EQ(handler_.facts.answered, 0);
  EXPECT_EQ(pipe_->session()->open_requests(), 1U);
  pipe_->GiveRoom(1000);
  EXPECT_EQ(handler_.facts.answered, 1);
  EXPECT_EQ(pipe_->session()->open_requests(), 0U);
}

TEST_F(Http2SessionTest, EarlyAnswerEndsTheUpload) {
  Open();
  pipe_->TakeOutput();
  pipe_->Send(Post(1, "/early"));
  const auto frames = Answers();
  const auto resets = OfType(frames, kRstStream);
  ASSERT_THAT(resets, SizeIs(1));
  EXPECT_EQ(NumberAt(resets[0].payload, 0, 4), kNoError);
  EXPECT_EQ(handler_.facts.answered, 1);
}

TEST_F(Http2SessionTest, ResetByTheClientEndsTheExchangeAtOnce) {
  Open();
  pipe_->Send(Get(1, "/wait"));
  EXPECT_EQ(handler_.facts.lost, 0);
  pipe_->Send(ResetFrame(1, kCancel));
  EXPECT_EQ(handler_.facts.lost, 1);
  EXPECT_TRUE(pipe_->session()->IsIdle());
}

TEST_F(Http2SessionTest, AnAnswerThatCannotBeScheduledEndsTheConnection) {
  Open();
  pipe_->Send(Get(1, "/wait") + Get(3, "/wait"));
  ASSERT_THAT(handler_.facts.waiting, SizeIs(2));
  loop_.FailNextPost();
  EXPECT_NO_THROW(handler_.facts.waiting[0]->SendHead(200, {}));
  EXPECT_TRUE(pipe_->aborted());
  loop_.RunUntilIdle();
  EXPECT_EQ(handler_.facts.lost, 2);
}

TEST_F(Http2SessionTest, ALostConnectionEndsAllExchanges) {
  Open();
  for (uint32_t i = 0; i < 10; ++i) pipe_->Send(Get(2 * i + 1, "/wait"));
  pipe_->Break();
  EXPECT_EQ(handler_.facts.lost, 10);
}

}  // namespace
}  // namespace saccade::server
