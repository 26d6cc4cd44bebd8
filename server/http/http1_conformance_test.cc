// Which requests are well-formed HTTP/1.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/testing/http1_fixture.h"

namespace saccade::server {
namespace {

using ::testing::StartsWith;

// Requests that a proxy in front could understand otherwise, and other bytes that are no request.
TEST_F(Http1SessionTest, MalformedRequests) {
  const std::string post = "POST /a HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n";
  const struct {
    const char* name;
    std::string bytes;
    int status;
  } cases[] = {
      // Two lengths.
      {"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {"the same length twice", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400},
      {"a list of lengths", post + "Content-Length: 5, 5\r\n\r\nhello", 400},
      {"a length with a sign", post + "Content-Length: +5\r\n\r\nhello", 400},
      {"a negative length", post + "Content-Length: -1\r\n\r\nhello", 400},
      {"a length with letters", post + "Content-Length: 5x\r\n\r\nhello", 400},
      {"a hexadecimal length", post + "Content-Length: 0x5\r\n\r\nhello", 400},
      {"an empty length", post + "Content-Length:\r\n\r\nhello", 400},
      {"a huge length", post + "Content-Length: 99999999999999999999\r\n\r\nhello", 400},
      {"length and chunks", chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {"chunks and length", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      // Other codings.
      {"chunked twice", chunked + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunked in a list", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501},
      {"gzip and chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"chunked and identity", post + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
      {"gzip", post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"identity", post + "Transfer-Encoding: identity\r\n\r\n", 501},
      {"xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {"quoted", post + "Transfer-Encoding: \"chunked\"\r\n\r\n", 501},
      {"empty", post + "Transfer-Encoding:\r\n\r\n", 501},
      {"a vertical tab",
       post + "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"length and another coding", post + "Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\nhello", 400},
      {"chunks in HTTP/1.0", "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      // Names and lines.
      {"a space before the colon", post + "Content-Length : 5\r\n\r\nhello", 400},
      {"a tab before the colon", post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a space in a name", post + "a b: c\r\n\r\n", 400},
      {"no name", post + ": c\r\n\r\n", 400},
      {"no colon", post + "abc\r\n\r\n", 400},
      {"a folded line", post + "X: a\r\n b\r\n\r\n", 400},
      {"a folded coding", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
      {"a folded line with a tab", post + "X: a\r\n\tb\r\n\r\n", 400},
      {"a first line with a space", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"LF alone between fields", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
      {"LF alone after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 505},
      {"CR alone in a value", post + "X: a\rb\r\n\r\n", 400},
      {"CR alone as an end", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400},
      {"NUL in a value", post + std::string("X: a\0b\r\n\r\n", 11), 400},
      {"NUL in a name", post + std::string("X\0: a\r\n\r\n", 9), 400},
      {"a control character in a value", post + "X: \x01\r\n\r\n", 400},
      {"a byte beyond ASCII in a name", post + "\xc3\xa4: b\r\n\r\n", 400},
      // Request lines.
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a control character in the path", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: a\r\n\r\n", 400},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"HTTP/1.10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 505},
      {"http/1.1", "GET / http/1.1\r\nHost: a\r\n\r\n", 505},
      {"words after the version", "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n", 505},
      {"no path", "GET ?q HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a path without slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"an asterisk", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a user in the target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"no host in the target", "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 400},
      {"HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"TLS", "\x16\x03\x01 not http\r\n\r\n", 400},
      {"five empty lines", "\r\n\r\n\r\n\r\n\r\n", 400},
      // Hosts.
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"the same Host twice", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"two names in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"a user in Host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
      {"a path in Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"a port that is none", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
      // Chunks.
      {"no size", chunked + "\r\nx\r\n\r\n\r\n", 400},
      {"a size that is none", chunked + "\r\nx\r\n", 400},
      {"a negative size", chunked + "\r\n-1\r\nh\r\n", 400},
      {"a size with 0x", chunked + "\r\n0x1\r\nh\r\n\r\n", 400},
      {"a space before a size", chunked + "\r\n 1\r\nh\r\n", 400},
      {"LF alone after a size", chunked + "\r\n1\nh\r\n0\r\n\r\n", 400},
      {"LF alone in an extension", chunked + "\r\n1;a\nh\r\n0\r\n\r\n", 400},
      {"CR alone in an extension", chunked + "\r\n1;a\rb\r\nh\r\n0\r\n\r\n", 400},
      {"a control character in an extension", chunked + "\r\n1 ;\x01\r\nh\r\n", 400},
      {"LF alone in quotes of an extension", chunked + "\r\n1;a=\"\n\"\r\nh\r\n0\r\n\r\n", 400},
      {"a line's end in quotes of an extension", chunked + "\r\n1;a=\"\r\n\"\r\nh\r\n0\r\n\r\n", 400},
      {"more than the size", chunked + "\r\n1\r\nhello\r\n", 400},
      {"a size beyond 64 bits", chunked + "\r\n10000000000000000\r\nh", 400},
      {"LF alone after a chunk", chunked + "\r\n1\r\nh\n0\r\n\r\n", 400},
      {"a trailer without a colon", chunked + "\r\n0\r\nabc\r\n\r\n", 400},
  };
  AnswerAll();
  for (const auto& row : cases) {
    handler_.seen.clear();
    Connect();
    EXPECT_THAT(Ask(row.bytes + Get("/hidden")), StartsWith(absl::StrCat("HTTP/1.1 ", row.status, " ")))
        << row.name;
    EXPECT_TRUE(pipe_->closed()) << row.name;
    for (const auto& seen : handler_.seen) EXPECT_FALSE(seen->complete) << row.name;
  }
}

TEST_F(Http1SessionTest, UnusualRequestsThatAreWellFormed) {
  AnswerAll();
  for (const std::string& request :
       {std::string("GET / HTTP/1.1\r\nHost:\r\n\r\n"), std::string("GET / HTTP/1.0\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nhOST:a\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 005\r\n\r\nhello"),
        std::string("X-OWN / HTTP/1.1\r\nHost: a\r\n\r\n"),
        std::string("GET // HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4\r\n\r\n")}) {
    Connect();
    EXPECT_THAT(Ask(request), StartsWith("HTTP/1.1 200 ")) << request;
  }
}

}  // namespace
}  // namespace saccade::server
