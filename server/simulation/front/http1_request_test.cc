#include "server/simulation/front/http1_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/http/http_limits.h"
#include "server/http/request_parser.h"

namespace saccade::server::simulation {
namespace {

// What the server's parser makes of the chunks; "malformed" if they are none.
std::string BodyOfChunks(const std::string& chunks) {
  const HttpLimits limits;
  RequestParser parser(limits);
  if (parser.ReadHead("POST / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n"))
    return "no head";
  std::string body;
  const auto take = [&body](absl::string_view piece) {
    body.append(piece.data(), piece.size());
    return piece.size();
  };
  size_t used = 0;
  while (!parser.body_done()) {
    size_t taken = 0;
    if (parser.ReadChunks({chunks.data() + used, chunks.size() - used}, take, &taken)) return "malformed";
    if (taken == 0) return "no end";
    used += taken;
  }
  return used == chunks.size() ? body : "more than one body";
}

TEST(Http1RequestTest, ChunksCarryTheBody) {
  Random random(1);
  for (const int64_t size : {0, 1, 2, 100, 3000, 200'000}) {
    const std::string body = SizedText(size);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(BodyOfChunks(InChunks(body, random)), body) << size;
  }
}

TEST(Http1RequestTest, ChunksHaveExtensionsAndTrailers) {
  Random random(1);
  std::string chunks;
  for (int i = 0; i < 20; ++i) chunks += InChunks(SizedText(1000), random);
  for (const char* part : {";part=1\r\n", ";name=\"a value\"\r\n", "0\r\nX-Sum: 1\r\n", "0\r\n\r\n"})
    EXPECT_THAT(chunks, ::testing::HasSubstr(part));
}

TEST(Http1RequestTest, EveryDrawnHeadIsARequest) {
  Random random(1);
  const HttpLimits limits;
  std::set<Http1Kind> kinds;
  for (int i = 0; i < 300; ++i) {
    const Http1Request request = DrawHttp1Request(random);
    RequestParser parser(limits);
    ASSERT_FALSE(parser.ReadHead({request.head.data(), request.head.size()}).has_value()) << request.head;
    EXPECT_EQ(parser.chunked(), request.is_chunked);
    EXPECT_EQ(parser.keep_alive(), !request.closes);
    EXPECT_EQ(parser.head().has_body, !request.body.empty());
    if (parser.head().has_body && !request.is_chunked) {
      EXPECT_EQ(parser.head().content_length, request.body.size());
    }
    kinds.insert(request.kind);
  }
  EXPECT_EQ(kinds.size(), size_t{kHttp1Kinds});
}

}  // namespace
}  // namespace saccade::server::simulation
