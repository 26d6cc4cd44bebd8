// What an HTTP/2 connection does with time: time-outs, keepalive, drain and age.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http/testing/http2_fixture.h"

namespace saccade::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Http2SessionTest, AHeadThatNeverEndsTimesOut) {
  Open();
  pipe_->Send(BytesOf({kHeaders, kEndStream, 1, HeaderBlock(GetFields())}));
  loop_.Advance(limits_.head_timeout + absl::Seconds(1));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTimeout), 1);
}

// A connection that is not idle makes no room for others.
TEST_F(Http2SessionTest, AHeadThatIsNotCompleteLeavesTheConnectionIdle) {
  Open();
  const std::string block = HeaderBlock(GetFields("/wait"));
  pipe_->Send(BytesOf({kHeaders, kEndStream, 1, block.substr(0, 9)}));
  EXPECT_TRUE(pipe_->session()->IsIdle());
  pipe_->Send(BytesOf({kContinuation, kEndHeaders, 1, block.substr(9)}));
  EXPECT_FALSE(pipe_->session()->IsIdle());
  pipe_->Send(BytesOf({kHeaders, kEndStream, 3, block.substr(0, 9)}));
  EXPECT_FALSE(pipe_->session()->IsIdle()) << "the first request is not answered";
  pipe_->Send(BytesOf({kContinuation, kEndHeaders, 3, block.substr(9)}) + ResetFrame(1, kCancel) +
              ResetFrame(3, kCancel));
  EXPECT_TRUE(pipe_->session()->IsIdle());
}

TEST_F(Http2SessionTest, TrailersThatAreNotCompleteBelongToARequest) {
  Open();
  pipe_->Send(Post(1, "/wait"));
  pipe_->Send(BytesOf({kHeaders, kEndStream, 1, HeaderBlock({{"a", "b"}})}));
  EXPECT_FALSE(pipe_->session()->IsIdle());
}

TEST_F(Http2SessionTest, AHeadThatComesSlowlyInOneFrameTimesOut) {
  Open();
  const std::string request = Get(1);
  for (const char byte : request.substr(0, request.size() - 1)) {
    pipe_->Send(std::string(1, byte));
    if (!pipe_->lost()) loop_.Advance(limits_.head_timeout / 20);
  }
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.begun, 0);
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTimeout), 1);
}

TEST_F(Http2SessionTest, AnInvalidHeadIsNotAwaitedAnyLonger) {
  Open();
  const std::string block = HeaderBlock(With(GetFields(), {{"Accept", "x"}}));
  pipe_->Send(Get(1, "/wait") + BytesOf({kHeaders, kEndStream, 3, block.substr(0, 9)}));
  pipe_->Send(BytesOf({kContinuation, kEndHeaders, 3, block.substr(9)}));
  EXPECT_THAT(OfType(Answers(), kRstStream), SizeIs(1));
  loop_.Advance(limits_.head_timeout + absl::Seconds(1));
  EXPECT_FALSE(pipe_->lost());
}

TEST_F(Http2SessionTest, AnIdleConnectionIsClosed) {
  Open();
  pipe_->Send(Get(1));
  loop_.Advance(limits_.idle_timeout - absl::Seconds(1));
  EXPECT_FALSE(pipe_->lost());
  pipe_->Send(Get(3, "/wait"));
  loop_.Advance(absl::Seconds(30));
  EXPECT_FALSE(pipe_->lost());
  pipe_->Send(ResetFrame(3, kCancel));
  loop_.Advance(limits_.idle_timeout + absl::Seconds(1));
  EXPECT_TRUE(pipe_->lost());
}

TEST_F(Http2SessionTest, ASilentClientWithACallIsAskedAndThenDropped) {
  Open();
  pipe_->Send(Get(1, "/wait"));
  pipe_->TakeOutput();
  loop_.Advance(limits_.keepalive_time + absl::Seconds(1));
  EXPECT_THAT(OfType(Answers(), kPing), SizeIs(1));
  EXPECT_FALSE(pipe_->lost());
  loop_.Advance(limits_.keepalive_timeout + absl::Seconds(1));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.lost, 1);
}

TEST_F(Http2SessionTest, AnAnsweredPingKeepsTheConnection) {
  Open();
  pipe_->Send(Get(1, "/wait"));
  for (int i = 0; i < 10; ++i) {
    pipe_->TakeOutput();
    loop_.Advance(limits_.keepalive_time + absl::Seconds(1));
    for (const Frame& ping : OfType(Answers(), kPing)) pipe_->Send(BytesOf({kPing, kAck, 0, ping.payload}));
  }
  EXPECT_FALSE(pipe_->lost());
}

TEST_F(Http2SessionTest, DrainAnnouncesThenRefusesAndEndsWithTheLastAnswer) {
  Open();
  pipe_->Send(Get(1, "/wait"));
  pipe_->TakeOutput();
  pipe_->session()->Drain(absl::Seconds(1));
  loop_.RunUntilIdle();
  auto goaways = OfType(Answers(), kGoaway);
  ASSERT_THAT(goaways, SizeIs(1));
  EXPECT_EQ(NumberAt(goaways[0].payload, 0, 4), 0x7fffffffU);
  // A request that was under way is still taken.
  pipe_->Send(Get(3, "/wait"));
  EXPECT_EQ(handler_.facts.begun, 2);
  loop_.Advance(absl::Seconds(2));
  goaways = OfType(Answers(), kGoaway);
  ASSERT_THAT(goaways, SizeIs(1));
  EXPECT_EQ(NumberAt(goaways[0].payload, 0, 4), 3U);
  pipe_->Send(Get(5, "/wait"));
  EXPECT_EQ(handler_.facts.begun, 2);
  EXPECT_FALSE(pipe_->lost());
  for (Exchange* exchange : handler_.facts.waiting) {
    exchange->SendHead(204, {});
    exchange->End({});
  }
  loop_.RunUntilIdle();
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.answered, 2);
}

TEST_F(Http2SessionTest, AnAnswerThatTheClientsWindowHoldsBackIsEnded) {
  Open();
  pipe_->Send(SettingsFrame(Setting(4, 10)));
  pipe_->Send(Post(1) + DataFrame(1, "hello world, how are you", true) + Get(3, "/wait"));
  pipe_->TakeOutput();
  loop_.Advance(2 * limits_.transfer_grace + absl::Seconds(1));
  const auto resets = OfType(Answers(), kRstStream);
  ASSERT_THAT(resets, SizeIs(1));
  EXPECT_EQ(NumberAt(resets[0].payload, 0, 4), kEnhanceYourCalm);
  EXPECT_EQ(refusals_.Of(Refusal::kStalledDownload), 1);
  EXPECT_EQ(refusals_.cut(), 1U);
  EXPECT_EQ(pipe_->session()->accepted_requests(), 1U) << "the other one waits for its answer";
  EXPECT_EQ(handler_.facts.lost, 1);
  EXPECT_FALSE(pipe_->lost());
}

TEST_F(Http2SessionTest, AnAnswerThatIsReadAtTheLeastRateIsFinished) {
  Open();
  pipe_->Send(Post(1, "/large"));
  for (int i = 0; i < 1024; ++i) pipe_->Send(DataFrame(1, std::string(16384, 'x'), false));
  pipe_->Send(DataFrame(1, "", true));
  const auto step = static_cast<uint32_t>(limits_.min_bytes_per_second + 1);
  for (int i = 0; i < 65 && handler_.facts.answered == 0; ++i) {
    pipe_->TakeOutput();
    pipe_->Send(WindowFrame(0, step) + WindowFrame(1, step));
    loop_.Advance(absl::Seconds(1));
    for (const Frame& ping : OfType(Answers(), kPing)) pipe_->Send(BytesOf({kPing, kAck, 0, ping.payload}));
  }
  EXPECT_EQ(handler_.facts.answered, 1);
  EXPECT_EQ(refusals_.Of(Refusal::kStalledDownload), 0);
  EXPECT_EQ(refusals_.cut(), 0U);
}

TEST_F(Http2SessionTest, WhatTheClientCancelsOrHasNotSentIsNotCut) {
  limits_.max_connection_age = absl::Minutes(1);
  limits_.max_connection_age_grace = absl::Seconds(5);
  Open();
  pipe_->Send(Get(1, "/wait") + Post(3) + Get(5, "/wait"));
  EXPECT_EQ(pipe_->session()->open_requests(), 3U);
  EXPECT_EQ(pipe_->session()->accepted_requests(), 2U) << "a body has not come";
  pipe_->Send(ResetFrame(5, kCancel));
  EXPECT_EQ(pipe_->session()->accepted_requests(), 1U);
  pipe_->Break();
  loop_.RunUntilIdle();
  EXPECT_EQ(refusals_.cut(), 0U) << "the client has left";
}

TEST_F(Http2SessionTest, AnOldConnectionIsDrained) {
  limits_.max_connection_age = absl::Minutes(1);
  limits_.max_connection_age_grace = absl::Seconds(5);
  Open();
  pipe_->Send(Get(1, "/wait"));
  pipe_->TakeOutput();
  loop_.Advance(absl::Seconds(53));
  EXPECT_THAT(OfType(Answers(), kGoaway), IsEmpty());
  loop_.Advance(absl::Seconds(14));
  EXPECT_THAT(OfType(Answers(), kGoaway), ::testing::Not(IsEmpty()));
  loop_.Advance(absl::Seconds(6));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.lost, 1);
  EXPECT_EQ(refusals_.cut(), 1U);
}

TEST_F(Http2SessionTest, AnAgeThatPassesDuringADrainLeavesRequestsTheirGrace) {
  limits_.max_connection_age = absl::Seconds(40);
  limits_.max_connection_age_grace = absl::Seconds(15);
  Open();
  pipe_->Send(Get(1, "/wait"));
  pipe_->session()->Drain(absl::Seconds(1));
  // The age is spread over 36 to 44 s.
  loop_.Advance(absl::Seconds(50));
  EXPECT_FALSE(pipe_->lost());
  EXPECT_EQ(handler_.facts.lost, 0);
  loop_.Advance(absl::Seconds(9));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.lost, 1);
}

TEST_F(Http2SessionTest, ADrainOfAnOldConnectionDoesNotProlongIt) {
  limits_.max_connection_age = absl::Seconds(40);
  limits_.max_connection_age_grace = absl::Seconds(15);
  Open();
  pipe_->Send(Get(1, "/wait"));
  loop_.Advance(absl::Seconds(45));
  pipe_->session()->Drain(absl::Seconds(30));
  loop_.Advance(absl::Seconds(4));
  EXPECT_FALSE(pipe_->lost());
  loop_.Advance(absl::Seconds(11));
  EXPECT_TRUE(pipe_->lost());
}

}  // namespace
}  // namespace saccade::server
