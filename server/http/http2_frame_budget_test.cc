#include "server/http/http2_frame_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace saccade::server {
namespace {

nghttp2_frame_hd Head(uint8_t type, int32_t stream = 1, uint8_t flags = 0, size_t length = 0) {
  nghttp2_frame_hd head{};
  head.type = type;
  head.stream_id = stream;
  head.flags = flags;
  head.length = length;
  return head;
}

class FrameBudgetTest : public ::testing::Test {
 protected:
  // How many such frames, all at once, are allowed before the client is disconnected.
  int Allowed(const nghttp2_frame_hd& frame, Refusal reason) {
    constexpr int kMany = 100'000;
    for (int i = 0; i < kMany; ++i) {
      const FrameBudget::Verdict verdict = budget_.Take(frame, /*is_full=*/false, now_);
      if (!verdict.disconnect) continue;
      EXPECT_EQ(verdict.refusal, reason);
      return i;
    }
    return kMany;
  }

  HttpLimits limits_ = {
      .max_resets_per_second = 20, .max_control_frames_per_second = 10, .max_window_updates_per_second = 30};
  FrameBudget budget_{limits_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(FrameBudgetTest, EachKindHasItsOwnBound) {
  EXPECT_EQ(Allowed(Head(NGHTTP2_PING, 0), Refusal::kControlFrames), 10);
  EXPECT_EQ(Allowed(Head(NGHTTP2_WINDOW_UPDATE, 0), Refusal::kControlFrames), 30);
  EXPECT_EQ(Allowed(Head(NGHTTP2_RST_STREAM), Refusal::kResets), 20);
}

TEST_F(FrameBudgetTest, ControlFramesShareOneBound) {
  for (const nghttp2_frame_hd& frame : {Head(NGHTTP2_PING, 0), Head(NGHTTP2_SETTINGS, 0),
                                        Head(NGHTTP2_PRIORITY), Head(NGHTTP2_DATA), Head(0xef)}) {
    now_ += absl::Seconds(1);
    for (int i = 0; i < 9; ++i) EXPECT_FALSE(budget_.Take(frame, false, now_).disconnect);
    EXPECT_EQ(Allowed(Head(NGHTTP2_PING, 0), Refusal::kControlFrames), 1) << int{frame.type};
  }
}

TEST_F(FrameBudgetTest, UsefulFramesAreNotBounded) {
  for (const nghttp2_frame_hd& frame :
       {Head(NGHTTP2_DATA, 1, 0, 1), Head(NGHTTP2_DATA, 1, NGHTTP2_FLAG_END_STREAM),
        Head(NGHTTP2_CONTINUATION), Head(NGHTTP2_SETTINGS, 0, NGHTTP2_FLAG_ACK)}) {
    EXPECT_EQ(Allowed(frame, Refusal::kControlFrames), 100'000) << int{frame.type};
  }
}

TEST_F(FrameBudgetTest, PongsThatAnswerNothingAreControlFrames) {
  const nghttp2_frame_hd pong = Head(NGHTTP2_PING, 0, NGHTTP2_FLAG_ACK);
  for (int i = 0; i < 5; ++i) budget_.ExpectPong();
  EXPECT_EQ(Allowed(pong, Refusal::kControlFrames), 5 + 10);
}

TEST_F(FrameBudgetTest, HeadsOfStreamsThatHaveEndedAreControlFrames) {
  const nghttp2_frame_hd late = Head(NGHTTP2_HEADERS, 1, NGHTTP2_FLAG_END_HEADERS);
  ASSERT_FALSE(budget_.Take(late, false, now_).refusal) << "it opens the stream";
  budget_.UseHead();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(budget_.Take(late, false, now_).refusal) << "trailers of an open stream";
    budget_.UseHead();
  }
  for (int i = 0; i < 20; ++i) budget_.ExpectLate(0);
  // Each is judged when the next frame comes.
  EXPECT_EQ(Allowed(late, Refusal::kControlFrames), 20 + 10 + 1);
}

TEST_F(FrameBudgetTest, LargeLateHeadsCountAsMany) {
  const auto allowed = [this](size_t length, uint8_t flags) {
    budget_ = FrameBudget(limits_);
    const nghttp2_frame_hd head = Head(NGHTTP2_HEADERS, 1, flags, length);
    budget_.Take(head, false, now_);
    budget_.UseHead();
    return Allowed(head, Refusal::kControlFrames) - 1;
  };
  EXPECT_EQ(allowed(255, NGHTTP2_FLAG_END_HEADERS), 10);
  EXPECT_EQ(allowed(1024, NGHTTP2_FLAG_END_HEADERS), 2);
  EXPECT_EQ(allowed(0, 0), 1) << "frames that continue it are not seen";
}

TEST_F(FrameBudgetTest, LateDataIsExpectedAsFarAsItWasAllowed) {
  const uint64_t small = FrameBudget::LateCost(Head(NGHTTP2_DATA, 1, 0, 1));
  EXPECT_EQ(small, FrameBudget::LateCost(Head(NGHTTP2_DATA)));
  EXPECT_EQ(FrameBudget::LateCost(Head(NGHTTP2_DATA, 1, 0, 5000)), 5000u);
  for (int i = 0; i < 100; ++i) {
    budget_.ExpectLate(100'000);
    EXPECT_FALSE(budget_.TakeLateData(100'000 + small, now_).disconnect) << "with an empty one at the end";
  }
  EXPECT_FALSE(budget_.TakeLateData(1'000'000, now_).disconnect) << "some more are allowed";
  const FrameBudget::Verdict verdict = budget_.TakeLateData(1'000'000, now_);
  EXPECT_TRUE(verdict.disconnect);
  EXPECT_EQ(verdict.refusal, Refusal::kControlFrames);
  now_ += absl::Seconds(1);
  for (int i = 0; i < 1000; ++i) budget_.ExpectLate(1'000'000);
  EXPECT_TRUE(budget_.TakeLateData(40 << 20, now_).disconnect) << "more than can be on its way";
}

TEST_F(FrameBudgetTest, BucketsFillWithTime) {
  EXPECT_EQ(Allowed(Head(NGHTTP2_RST_STREAM), Refusal::kResets), 20);
  now_ += absl::Milliseconds(500);
  EXPECT_EQ(Allowed(Head(NGHTTP2_RST_STREAM), Refusal::kResets), 10);
  now_ += absl::Hours(1);
  EXPECT_EQ(Allowed(Head(NGHTTP2_RST_STREAM), Refusal::kResets), 20);
}

TEST_F(FrameBudgetTest, ProvokedResetsCountAsResets) {
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(budget_.TakeProvokedReset(now_).disconnect);
  EXPECT_EQ(Allowed(Head(NGHTTP2_RST_STREAM), Refusal::kResets), 5);
  const FrameBudget::Verdict verdict = budget_.TakeProvokedReset(now_);
  EXPECT_TRUE(verdict.disconnect);
  EXPECT_EQ(verdict.refusal, Refusal::kResets);
}

TEST_F(FrameBudgetTest, StreamsBeyondTheLimitAreRefusedAndThenEndTheConnection) {
  int32_t stream = 1;
  EXPECT_FALSE(budget_.Take(Head(NGHTTP2_HEADERS, stream), false, now_).refusal);
  // Trailers open no stream.
  EXPECT_FALSE(budget_.Take(Head(NGHTTP2_HEADERS, stream), true, now_).refusal);
  int refused = 0;
  while (refused < 10'000) {
    stream += 2;
    const FrameBudget::Verdict verdict = budget_.Take(Head(NGHTTP2_HEADERS, stream), true, now_);
    EXPECT_EQ(verdict.refusal, Refusal::kStreams);
    if (verdict.disconnect) break;
    ++refused;
  }
  EXPECT_EQ(refused, 500);
}

TEST_F(FrameBudgetTest, AnswersAllowOnePingAtATime) {
  for (int i = 0; i < 10'000; ++i) {
    budget_.AllowPing();
    budget_.AllowPing();
    EXPECT_FALSE(budget_.Take(Head(NGHTTP2_PING, 0), /*is_full=*/false, now_).refusal) << i;
  }
  EXPECT_EQ(Allowed(Head(NGHTTP2_PING, 0), Refusal::kControlFrames), 10);
}

}  // namespace
}  // namespace saccade::server
