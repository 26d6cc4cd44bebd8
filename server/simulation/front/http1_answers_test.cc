#include "server/simulation/front/http1_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace saccade::server::simulation {
namespace {

using ::testing::HasSubstr;

TEST(Http1AnswersTest, ReadsAnswersOfAConnectionInOrder) {
  Http1Answers answers;
  answers.Add("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc");
  answers.Add("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  const auto first = answers.Take(false);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "abc");
  EXPECT_FALSE(first->closes);
  EXPECT_EQ(FindHeader(first->headers, "content-type"), "text/plain");
  const auto second = answers.Take(false);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->status, 429);
  EXPECT_TRUE(second->closes);
  EXPECT_TRUE(answers.empty());
  EXPECT_FALSE(answers.Take(false).has_value());
  EXPECT_EQ(answers.malformed(), "");
}

TEST(Http1AnswersTest, AnAnswerIsTakenWhenItsLastByteHasCome) {
  const std::string bytes =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n"
      "0\r\nX-Sum: 1\r\n\r\n";
  Http1Answers answers;
  const size_t head = bytes.find("\r\n\r\n") + 4;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(answers.Take(false).has_value()) << "before byte " << i;
    EXPECT_EQ(answers.has_head(), i >= head);
    answers.Add(bytes.substr(i, 1));
  }
  const auto answer = answers.Take(false);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->body, "abcabcdefghijklmnopqrstuvwxyz");
  EXPECT_TRUE(answer->is_chunked);
  EXPECT_TRUE(answers.empty());
}

TEST(Http1AnswersTest, InterimAnswersAndAnswersToHeadHaveNoBody) {
  Http1Answers answers;
  answers.Add("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(answers.Take(true)->status, 100);
  EXPECT_EQ(answers.Take(true)->status, 200);
  EXPECT_TRUE(answers.empty());
}

TEST(Http1AnswersTest, SaysWhyBytesAreNoAnswer) {
  const struct {
    const char* bytes;
    const char* why;
  } kCases[] = {
      {"HTTP/1.0 200 OK\r\n\r\n", "no status line"},
      {"HTTP/1.1 20 OK\r\n\r\n", "no status line"},
      {"abc\r\n\r\n", "no status line"},
      {"HTTP/1.1 200 OK\r\n\r\n", "a body without a length or chunks"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", "a body without a length or chunks"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "two lengths"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "a length and chunks"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "not one Transfer-Encoding"},
      {"HTTP/1.1 200 OK\r\nno header\r\n\r\n", "a header without a name"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "no chunk's size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "a chunk longer than its size"},
  };
  for (const auto& test : kCases) {
    Http1Answers answers;
    answers.Add(test.bytes);
    EXPECT_FALSE(answers.Take(false).has_value()) << test.bytes;
    EXPECT_THAT(answers.malformed(), HasSubstr(test.why)) << test.bytes;
  }
}

}  // namespace
}  // namespace saccade::server::simulation
