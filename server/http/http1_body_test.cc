// Bodies of requests and responses over HTTP/1.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/testing/http1_fixture.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr size_t kFirst = Exchange::kFirstBodyBytes;

TEST_F(Http1SessionTest, ABodyWithoutLengthComesInChunks) {
  handler_.on_body_end = [](ScriptHandler::Seen& seen) {
    seen.exchange->SendHead(200, {});
    seen.Send("hello");
    seen.Send("");
    seen.Send(std::string(16, 'x'));
    seen.exchange->End({{"grpc-status", "0"}});
  };
  const std::string chunks = "5\r\nhello\r\n10\r\nxxxxxxxxxxxxxxxx\r\n0\r\n";
  Connect();
  EXPECT_EQ(Ask(Get("/a")), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + "\r\n");
  EXPECT_EQ(handler_.last().written, 2);
  EXPECT_THAT(Ask(Get("/a", "TE: deflate, trailers\r\n")), EndsWith(chunks + "Grpc-Status: 0\r\n\r\n"));
  EXPECT_FALSE(pipe_->closing());
  // HTTP/1.0 has no chunks: the end of the connection ends the body.
  EXPECT_EQ(Ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhelloxxxxxxxxxxxxxxxx");
  EXPECT_TRUE(pipe_->closed());
  EXPECT_TRUE(handler_.last().answered);
}

TEST_F(Http1SessionTest, HeadGetsNoBody) {
  AnswerAll();
  Connect();
  EXPECT_EQ(Ask("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  handler_.on_body_end = [](ScriptHandler::Seen& seen) {
    seen.exchange->SendHead(304, {});
    seen.exchange->End({});
  };
  EXPECT_THAT(Ask(Get("/a")), Not(HasSubstr("Transfer-Encoding")));
  EXPECT_FALSE(pipe_->closing());
}

// The client would take what is missing, or too much, for the next response.
TEST_F(Http1SessionTest, ABodyOfAnotherLengthThanAnnouncedEndsTheConnection) {
  for (const char* text : {"four", "six..."}) {
    handler_.on_body_end = [text](ScriptHandler::Seen& seen) {
      seen.exchange->SendHead(200, {{"content-length", "5"}});
      seen.Send(text);
      seen.exchange->End({});
    };
    Connect();
    EXPECT_THAT(Ask(Get("/a")), Not(HasSubstr("six")));
    EXPECT_TRUE(pipe_->closed()) << text;
  }
}

TEST_F(Http1SessionTest, ABodyComesAsFarAsItIsAllowed) {
  const std::string body(kFirst + 3000, 'x');
  for (const std::string& request :
       {Post("/a", body),
        Chunked("/a", absl::StrCat(absl::Hex(body.size()), "\r\n", body, "\r\n0\r\n\r\n"))}) {
    Connect();
    Ask(request);
    ScriptHandler::Seen& seen = handler_.last();
    EXPECT_EQ(seen.body.size(), kFirst);
    seen.exchange->AllowBody(kFirst);
    EXPECT_EQ(seen.body.size(), kFirst);
    seen.exchange->AllowBody(kFirst + 1000);
    EXPECT_EQ(seen.body.size(), kFirst + 1000);
    EXPECT_FALSE(seen.complete);
    seen.exchange->AllowBody(1);
    seen.exchange->AllowBody(uint64_t{1} << 30);
    EXPECT_EQ(seen.body, body);
    EXPECT_TRUE(seen.complete);
  }
}

TEST_F(Http1SessionTest, ReadingPausesForABodyThatIsNotAllowed) {
  Connect();
  Ask(Post("/a", std::string(kFirst + 100'000, 'x')));
  EXPECT_TRUE(pipe_->reading_paused());
  EXPECT_LE(handler_.last().body.size(), kFirst);
  handler_.last().exchange->AllowBody(kFirst + 100'000);
  loop_.RunUntilIdle();
  EXPECT_FALSE(pipe_->reading_paused());
  EXPECT_TRUE(handler_.last().complete);
}

TEST_F(Http1SessionTest, TheEndOfChunksNeedsNoPermission) {
  Connect();
  Ask(Chunked("/a", absl::StrCat(absl::Hex(kFirst), "\r\n", std::string(kFirst, 'x'), "\r\n0\r\n\r\n")));
  EXPECT_TRUE(handler_.last().complete);
}

TEST_F(Http1SessionTest, PermissionFromWithinTheBody) {
  handler_.on_body = [](ScriptHandler::Seen& seen) { seen.exchange->AllowBody(seen.body.size() + 10'000); };
  AnswerAll();
  Connect();
  EXPECT_THAT(Ask(Post("/a", std::string(300'000, 'x')) + Get("/b")), EndsWith("/b "));
  EXPECT_EQ(handler_.seen[0]->body.size(), 300'000u);
}

TEST_F(Http1SessionTest, AResponseBeforeTheBodyClosesTheConnection) {
  handler_.on_begin = [](ScriptHandler::Seen& seen) { seen.Answer("no"); };
  Connect();
  // The body looks like a request.
  const std::string output = Ask(Post("/a", Get("/hidden")));
  EXPECT_THAT(output, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(output, EndsWith("\r\n\r\nno"));
  EXPECT_EQ(handler_.seen.size(), 1u);
  EXPECT_EQ(handler_.last().body, "");
  EXPECT_FALSE(handler_.last().complete);
  EXPECT_TRUE(handler_.last().answered);
  EXPECT_TRUE(pipe_->closed());
  // Without a body there is nothing to mistake.
  Connect();
  EXPECT_THAT(Ask(Get("/a") + Get("/b")), Not(HasSubstr("close")));
  EXPECT_EQ(handler_.seen.size(), 3u);
}

TEST_F(Http1SessionTest, AResponseWithinTheBodyClosesTheConnection) {
  handler_.on_body = [](ScriptHandler::Seen& seen) { seen.Answer("enough"); };
  Connect();
  EXPECT_THAT(Ask(Chunked("/a", "1\r\nx\r\n1\r\ny\r\n0\r\n\r\n" + Get("/hidden"))), EndsWith("enough"));
  EXPECT_EQ(handler_.seen.size(), 1u);
  EXPECT_EQ(handler_.last().body, "x");
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, ContinueIsSentIfTheBodyIsWanted) {
  const std::string expect = "Expect: 100-Continue\r\n";
  Connect();
  std::string request = Post("/a", "ok", expect);
  EXPECT_EQ(Ask(request.substr(0, request.size() - 2)), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(Ask("o"), "");
  AnswerAll();
  EXPECT_THAT(Ask("k"), EndsWith("/a ok"));
  // The body is there already, or there is none.
  EXPECT_THAT(Ask(request), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(Get("/a", expect)), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask("POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"), "");
  handler_.on_begin = [](ScriptHandler::Seen& seen) { seen.Answer("no"); };
  Connect();
  EXPECT_THAT(Ask(request.substr(0, request.size() - 2)), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Http1SessionTest, ACutOffBodyIsRefused) {
  for (const std::string& request :
       {std::string("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello"),
        Chunked("/a", "9\r\nhello"), Chunked("/a", "5\r\nhello\r\n0\r\n")}) {
    Connect();
    pipe_->Send(request);
    pipe_->EndSending();
    EXPECT_THAT(pipe_->TakeOutput(), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("ended before its end")));
    EXPECT_TRUE(handler_.last().over);
    EXPECT_FALSE(handler_.last().answered);
    EXPECT_TRUE(pipe_->closed());
  }
  // A head that is cut off is no request.
  Connect();
  pipe_->Send("GET /a HT");
  pipe_->EndSending();
  EXPECT_EQ(pipe_->TakeOutput(), "");
  EXPECT_TRUE(pipe_->closed());
}

TEST_F(Http1SessionTest, AMalformedChunkIsRefusedOnce) {
  Connect();
  const std::string output = Ask(Chunked("/a", "5\r\nhello\r\nx\r\n"));
  EXPECT_THAT(output, StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(handler_.last().body, "hello");
  EXPECT_TRUE(handler_.last().over);
  EXPECT_TRUE(pipe_->closed());
  EXPECT_EQ(refusals_.Of(Refusal::kMalformed), 1);
  // If the response has begun, nothing else can be said.
  handler_.on_body = [](ScriptHandler::Seen& seen) {
    if (seen.body == "hello") seen.exchange->SendHead(200, {});
  };
  Connect();
  EXPECT_THAT(Ask(Chunked("/a", "5\r\nhello\r\nx\r\n")), Not(HasSubstr(" 400 ")));
  EXPECT_TRUE(pipe_->aborted());
}

}  // namespace
}  // namespace saccade::server
