// Requests and responses over HTTP/1.1, one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/http/testing/http1_fixture.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(Http1SessionTest, AHeadArrivesWithLowerCaseNames) {
  Connect();
  Ask("GET /a%20b?c=d&e HTTP/1.1\r\nHost: Example.com:80\r\nX-Test: Value\r\nEmpty:\r\n\r\n");
  ASSERT_EQ(handler_.seen.size(), 1u);
  const RequestHead& head = handler_.last().head;
  EXPECT_EQ(head.version, HttpVersion::kHttp1);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.path, "/a%20b");
  EXPECT_EQ(head.query, "c=d&e");
  EXPECT_EQ(head.authority, "Example.com:80");
  EXPECT_EQ(head.headers, (HttpHeaders{{"host", "Example.com:80"}, {"x-test", "Value"}, {"empty", ""}}));
  EXPECT_EQ(head.content_length, std::nullopt);
  EXPECT_FALSE(head.has_body);
  EXPECT_TRUE(handler_.last().complete);
}

TEST_F(Http1SessionTest, TheHostOfTheTargetCounts) {
  Connect();
  Ask("GET http://other:8000/path?q HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(handler_.last().head.authority, "other:8000");
  EXPECT_EQ(handler_.last().head.path, "/path");
  EXPECT_EQ(handler_.last().head.query, "q");
  Connect();
  Ask("GET HTTPS://other HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(handler_.last().head.path, "/");
  Connect();
  Ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(handler_.last().head.path, "*");
}

TEST_F(Http1SessionTest, AResponseHasItsLengthAndTheConnectionStays) {
  AnswerAll();
  Connect();
  EXPECT_EQ(Ask(Get("/a")), "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n/a ");
  EXPECT_EQ(Ask(Post("/b", "hello")), "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n/b hello");
  EXPECT_TRUE(handler_.last().answered);
  EXPECT_FALSE(pipe_->closing());
}

TEST_F(Http1SessionTest, RequestsSentAheadWaitForTheResponse) {
  Connect();
  Ask(Get("/1") + Post("/2", "hello") + Get("/3"));
  ASSERT_EQ(handler_.seen.size(), 1u);
  EXPECT_EQ(pipe_->session()->open_requests(), 1u);
  handler_.last().Answer("one");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("\r\n\r\none"));
  ASSERT_EQ(handler_.seen.size(), 2u);
  EXPECT_EQ(handler_.last().body, "hello");
  AnswerAll();
  handler_.last().Answer("two");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("\r\n\r\n/3 "));
  EXPECT_EQ(pipe_->session()->open_requests(), 0u);
}

TEST_F(Http1SessionTest, ReadingPausesWhileMuchWaits) {
  Connect();
  std::string many;
  for (int i = 0; i < 1000; ++i) many += Get("/again");
  Ask(Get("/first") + many);
  EXPECT_TRUE(pipe_->reading_paused());
  AnswerAll();
  handler_.last().Answer("");
  loop_.RunUntilIdle();
  EXPECT_EQ(handler_.seen.size(), 1001u);
  EXPECT_FALSE(pipe_->reading_paused());
}

// While it does not read, it hears of the end without what was sent before it.
TEST_F(Http1SessionTest, AClientThatLeavesWhileReadingIsPausedEndsItsRequest) {
  Connect();
  std::string many;
  for (int i = 0; i < 1000; ++i) many += Get("/again");
  Ask(Get("/first") + many);
  ASSERT_TRUE(pipe_->reading_paused());
  pipe_->EndSending();
  EXPECT_TRUE(pipe_->aborted());
  EXPECT_TRUE(handler_.seen[0]->over);
}

TEST_F(Http1SessionTest, AClientThatEndsWhileItsBodyWaitsIsServed) {
  handler_.on_body_end = [](ScriptHandler::Seen& seen) { seen.Answer(std::to_string(seen.body.size())); };
  Connect();
  Ask(Post("/large", std::string(200'000, 'x')));
  ASSERT_TRUE(pipe_->reading_paused());
  pipe_->EndSending();
  ASSERT_FALSE(pipe_->aborted());
  handler_.last().exchange->AllowBody(200'000);
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("\r\n\r\n200000"));
}

TEST_F(Http1SessionTest, NoMoreIsReadThanCanBeUsed) {
  Connect();
  const size_t between = pipe_->session()->max_read();
  EXPECT_LE(between, size_t{16} << 10);
  Ask("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(pipe_->session()->max_read(), between + Exchange::kFirstBodyBytes);
  handler_.last().exchange->AllowBody(1'000'000);
  EXPECT_EQ(pipe_->session()->max_read(), between + 1'000'000);
  Ask(std::string(1'000'000, 'x'));
  EXPECT_TRUE(handler_.last().complete);
  EXPECT_EQ(pipe_->session()->max_read(), between);
}

// The handler's thread does not know yet that the request is over.
TEST_F(Http1SessionTest, AnAnswerToWhatWasRefusedMeanwhileIsDropped) {
  for (const bool in_time : {true, false}) {
    handler_.on_body = [&](ScriptHandler::Seen& seen) {
      loop_.Post([&seen, exchange = seen.exchange] {
        if (seen.exchange == nullptr) return;
        exchange->SendHead(200, {{"content-length", "5"}});
        seen.Send("hello");
        exchange->End({});
      });
    };
    Connect();
    const std::string chunk = "5\r\nhello\r\n";
    std::string output = Ask(Chunked("/a", in_time ? chunk : chunk + "ZZ\r\n"));
    if (in_time) output += Ask("ZZ\r\n");
    EXPECT_THAT(output, StartsWith(in_time ? "HTTP/1.1 200 " : "HTTP/1.1 400 "));
    EXPECT_EQ(output.find("hello") != std::string::npos, in_time) << output;
    EXPECT_TRUE(handler_.last().over);
    EXPECT_EQ(handler_.last().written, in_time ? 1 : 0);
  }
}

TEST_F(Http1SessionTest, RequestsMayComeByteByByte) {
  AnswerAll();
  Connect();
  std::string output;
  for (const char byte :
       Get("/a") + Chunked("/b", "5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n")) {
    output += Ask(std::string(1, byte));
  }
  EXPECT_THAT(output, StartsWith("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n/a "));
  EXPECT_THAT(output, EndsWith("\r\n\r\n/b hello0123456789"));
}

TEST_F(Http1SessionTest, AFewEmptyLinesBeforeARequestAreIgnored) {
  AnswerAll();
  Connect();
  EXPECT_THAT(Ask("\r\n" + Get("/a") + "\r\n" + Get("/b")), EndsWith("/b "));
  EXPECT_THAT(Ask("\r\n\r\n\r\n\r\n" + Get("/c")), EndsWith("/c "));
  for (const char byte : "\r\n\r\n" + Get("/d")) pipe_->Send(std::string(1, byte));
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("/d "));
  EXPECT_THAT(Ask("\r\n\r\n\r\n\r\n\r\n" + Get("/e")), StartsWith("HTTP/1.1 400 "));
}

TEST_F(Http1SessionTest, Http10StaysOpenOnlyIfAsked) {
  AnswerAll();
  Connect();
  EXPECT_THAT(Ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
              HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(pipe_->closing());
  EXPECT_THAT(Ask("GET /a HTTP/1.0\r\n\r\n"), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, AClientMayAskToClose) {
  AnswerAll();
  Connect();
  EXPECT_THAT(Ask(Get("/a", "Connection: close\r\n") + Get("/b")),
              StartsWith("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n"));
  EXPECT_EQ(handler_.seen.size(), 1u);
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, OtherExpectationsAreRefused) {
  Connect();
  EXPECT_THAT(Ask(Post("/a", "x", "Expect: more\r\n")), StartsWith("HTTP/1.1 417 "));
  EXPECT_EQ(handler_.seen.size(), 0u);
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, OfferedUpgradesAreIgnored) {
  AnswerAll();
  Connect();
  EXPECT_THAT(
      Ask(Get("/a", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n")),
      StartsWith("HTTP/1.1 200 "));
  EXPECT_FALSE(pipe_->closing());
}

TEST_F(Http1SessionTest, AnExchangeIsOverWhenItsLastByteIsWritten) {
  Connect();
  pipe_->LimitRoom(0);
  Ask(Get("/a"));
  ScriptHandler::Seen& seen = handler_.last();
  seen.exchange->SendHead(200, {{"content-length", "200000"}});
  seen.Send(std::string(100'000, 'x'));
  seen.Send(std::string(100'000, 'y'));
  seen.exchange->End({});
  loop_.RunUntilIdle();
  EXPECT_EQ(seen.exchange->unsent(), 200'000u);
  pipe_->GiveRoom(110'000);
  EXPECT_EQ(seen.exchange->unsent(), 100'000u);
  EXPECT_EQ(seen.written, 1);
  EXPECT_FALSE(seen.over);
  EXPECT_EQ(pipe_->session()->open_requests(), 1u);
  pipe_->GiveRoom(200'000);
  EXPECT_EQ(seen.written, 2);
  EXPECT_TRUE(seen.answered);
  EXPECT_EQ(pipe_->session()->open_requests(), 0u);
}

TEST_F(Http1SessionTest, EndMayComeWhenEverythingIsWritten) {
  Connect();
  Ask(Get("/a"));
  handler_.last().exchange->SendHead(200, {{"content-length", "2"}});
  handler_.last().Send("ok");
  loop_.RunUntilIdle();
  EXPECT_THAT(pipe_->TakeOutput(), EndsWith("ok"));
  handler_.last().exchange->End({});
  EXPECT_FALSE(handler_.last().over) << "not from within the call";
  loop_.RunUntilIdle();
  EXPECT_TRUE(handler_.last().answered);
  AnswerAll();
  EXPECT_THAT(Ask(Get("/b")), EndsWith("/b "));
}

TEST_F(Http1SessionTest, ALostConnectionEndsTheExchange) {
  Connect();
  Ask(Get("/a"));
  pipe_->Break();
  EXPECT_TRUE(handler_.last().over);
  EXPECT_FALSE(handler_.last().answered);
  // Responses that were not written are none.
  Connect();
  pipe_->LimitRoom(10);
  Ask(Get("/a"));
  handler_.last().Answer("text");
  loop_.RunUntilIdle();
  pipe_->Break();
  EXPECT_TRUE(handler_.last().over);
  EXPECT_FALSE(handler_.last().answered);
}

TEST_F(Http1SessionTest, AClientThatGoesWhileItsRequestIsHandledIsNoticed) {
  Connect();
  Ask(Get("/a"));
  pipe_->EndSending();
  EXPECT_TRUE(handler_.last().over);
  EXPECT_FALSE(handler_.last().answered);
  EXPECT_TRUE(pipe_->lost());
}

TEST_F(Http1SessionTest, AClientThatGoesAfterItsRequestsIsAnswered) {
  AnswerAll();
  Connect();
  pipe_->LimitRoom(0);
  pipe_->Send(Get("/a") + Get("/b") + Get("/c"));
  pipe_->EndSending();
  pipe_->GiveRoom(1 << 20);
  EXPECT_THAT(pipe_->TakeOutput(), AllOf(HasSubstr("/a "), HasSubstr("/b "), EndsWith("/c ")));
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, AResetClosesTheConnection) {
  Connect();
  Ask(Get("/a") + Get("/b"));
  handler_.last().exchange->Reset(ExchangeError::kInternal);
  EXPECT_FALSE(handler_.last().over) << "not from within the call";
  loop_.RunUntilIdle();
  EXPECT_TRUE(pipe_->aborted());
  EXPECT_TRUE(handler_.last().over);
  EXPECT_FALSE(handler_.last().answered);
  EXPECT_EQ(handler_.seen.size(), 1u);
}

}  // namespace
}  // namespace saccade::server
