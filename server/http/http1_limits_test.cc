// Bounds on the size and the time of HTTP/1.1 requests; drain and age of connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/testing/http1_fixture.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(Http1SessionTest, HeadsAreBounded) {
  AnswerAll();
  limits_.max_head_bytes = 1000;
  limits_.max_head_fields = 10;
  Connect();
  EXPECT_THAT(Ask(Get("/a", absl::StrCat("X: ", std::string(800, 'x'), "\r\n"))),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Get("/a", absl::StrCat("X: ", std::string(900, 'x'), "\r\n"))),
              StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
  EXPECT_TRUE(pipe_->closed());
  // No end is in sight.
  Connect();
  EXPECT_EQ(Ask("GET /a HTTP/1.1\r\nX: " + std::string(900, 'x')), "");
  EXPECT_THAT(Ask(std::string(100, 'x')), StartsWith("HTTP/1.1 431 "));
  std::string fields;
  for (int i = 0; i < 9; ++i) fields += "a:b\r\n";
  Connect();
  EXPECT_THAT(Ask(Get("/a", fields)), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Get("/a", fields + "a:b\r\n")),
              AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr("more than 10")));
  // Small fields take more memory than bytes on the wire.
  limits_.max_head_fields = 1000;
  Connect();
  EXPECT_THAT(Ask(Get("/a", fields + fields + fields + "a:b\r\n")), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTooLarge), 4);
}

TEST_F(Http1SessionTest, ChunkHeadsAndTrailersAreBounded) {
  limits_.max_head_bytes = 1000;
  for (const std::string& chunks : {"1;" + std::string(2000, 'x'), "0\r\n" + std::string(2000, 'x')}) {
    Connect();
    EXPECT_THAT(Ask(Chunked("/a", chunks)), StartsWith("HTTP/1.1 400 "));
    EXPECT_TRUE(pipe_->closed());
  }
}

TEST_F(Http1SessionTest, ASlowHeadIsRefused) {
  limits_.head_timeout = absl::Seconds(10);
  Connect();
  loop_.Advance(absl::Minutes(1));
  Ask("GET /a HTTP/1.1\r\n");
  for (int i = 0; i < 9; ++i) {
    loop_.Advance(absl::Seconds(1));
    EXPECT_EQ(Ask("X"), "");
  }
  loop_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(pipe_->TakeOutput(), "");
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(pipe_->TakeOutput(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTimeout), 1);
}

TEST_F(Http1SessionTest, AnIdleConnectionIsClosed) {
  AnswerAll();
  limits_.idle_timeout = absl::Seconds(30);
  Connect();
  loop_.Advance(absl::Seconds(20));
  Ask(Get("/a"));
  loop_.Advance(absl::Milliseconds(29'999));
  EXPECT_FALSE(pipe_->closing());
  loop_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(pipe_->TakeOutput().find("408"), std::string::npos);
  EXPECT_EQ(refusals_.Of(Refusal::kIdleTimeout), 1);
}

TEST_F(Http1SessionTest, IdleConnectionsAreNotClosedTogether) {
  limits_.idle_timeout = absl::Seconds(30);
  limits_.idle_spread = 0.1;
  std::set<absl::Duration> times;
  for (int i = 0; i < 100; ++i) {
    const absl::Duration time = SpreadIdle(limits_);
    EXPECT_GE(time, absl::Seconds(30));
    EXPECT_LE(time, absl::Seconds(33));
    times.insert(time);
  }
  EXPECT_GT(times.size(), 50u);
  Connect();
  loop_.Advance(absl::Milliseconds(29'999));
  EXPECT_FALSE(pipe_->closing());
  loop_.Advance(absl::Milliseconds(3'001));
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, AConnectionWithARequestIsNotIdle) {
  limits_.idle_timeout = absl::Seconds(30);
  Connect();
  EXPECT_TRUE(pipe_->session()->IsIdle());
  Ask(Get("/a"));
  EXPECT_FALSE(pipe_->session()->IsIdle());
  loop_.Advance(absl::Hours(1));
  EXPECT_FALSE(pipe_->closing());
  handler_.last().Answer("late");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("late"));
  EXPECT_TRUE(pipe_->session()->IsIdle());
  loop_.Advance(absl::Seconds(29));
  EXPECT_FALSE(pipe_->closing());
}

TEST_F(Http1SessionTest, AnOldConnectionEnds) {
  limits_.max_connection_age = absl::Seconds(100);
  limits_.max_connection_age_grace = absl::Seconds(50);
  for (int i = 0; i < 20; ++i) {
    Connect();
    loop_.Advance(absl::Seconds(89));
    EXPECT_FALSE(pipe_->closing());
    loop_.Advance(absl::Seconds(22));
    EXPECT_TRUE(pipe_->closed());
  }
  // A request in progress is answered.
  Connect();
  Ask(Get("/a"));
  loop_.Advance(absl::Seconds(111));
  EXPECT_FALSE(pipe_->closing());
  handler_.last().Answer("text");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(pipe_->closed());
  // But not for ever.
  Connect();
  Ask(Get("/a"));
  loop_.Advance(absl::Seconds(161));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_TRUE(handler_.last().over);
}

TEST_F(Http1SessionTest, ADrainLetsRequestsEnd) {
  Connect();
  Ask(Get("/a") + Get("/b"));
  pipe_->session()->Drain(absl::ZeroDuration());
  loop_.RunUntilIdle();
  EXPECT_FALSE(pipe_->closing());
  EXPECT_FALSE(handler_.last().over);
  handler_.last().Answer("text");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("text")));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_TRUE(handler_.last().answered);
  EXPECT_EQ(handler_.seen.size(), 1u);
}

TEST_F(Http1SessionTest, AnAgeThatPassesDuringADrainLeavesRequestsTheirGrace) {
  limits_.max_connection_age = absl::Seconds(100);
  limits_.max_connection_age_grace = absl::Seconds(50);
  Connect();
  Ask(Get("/a"));
  pipe_->session()->Drain(absl::Seconds(1));
  // The age is spread over 90 to 110 s.
  loop_.Advance(absl::Seconds(139));
  EXPECT_FALSE(pipe_->lost());
  EXPECT_FALSE(handler_.last().over);
  loop_.Advance(absl::Seconds(22));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_TRUE(handler_.last().over);
  EXPECT_EQ(refusals_.cut(), 1U);
}

TEST_F(Http1SessionTest, ADrainClosesIdleConnectionsAfterItsGrace) {
  AnswerAll();
  Connect();
  pipe_->session()->Drain(absl::ZeroDuration());
  EXPECT_TRUE(pipe_->closing());
  // The client may have sent a request already.
  Connect();
  pipe_->session()->Drain(absl::Seconds(1));
  EXPECT_FALSE(pipe_->closing());
  EXPECT_THAT(Ask(Get("/a")), AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("/a ")));
  EXPECT_TRUE(pipe_->closed());
  Connect();
  pipe_->session()->Drain(absl::Seconds(1));
  loop_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kIdleTimeout), 0);
}

TEST_F(Http1SessionTest, ADrainWaitsForAHeadThatHasBegun) {
  AnswerAll();
  Connect();
  Ask("GET /a HT");
  pipe_->session()->Drain(absl::ZeroDuration());
  loop_.Advance(absl::Seconds(5));
  EXPECT_FALSE(pipe_->closing());
  EXPECT_THAT(Ask("TP/1.1\r\nHost: a\r\n\r\n"), EndsWith("/a "));
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, ADrainWhileAResponseIsWrittenClosesAfterIt) {
  Connect();
  pipe_->LimitRoom(0);
  Ask(Get("/a"));
  handler_.last().Answer("text");
  loop_.RunUntilIdle();
  pipe_->session()->Drain(absl::ZeroDuration());
  EXPECT_FALSE(pipe_->closing());
  pipe_->GiveRoom(1000);
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("text"));
  EXPECT_TRUE(pipe_->closed());
}

}  // namespace
}  // namespace saccade::server
