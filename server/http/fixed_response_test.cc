#include "server/http/fixed_response.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/content_coding.h"
#include "server/http/http_reply.h"

namespace saccade::server {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

class FixedResponseTest : public ::testing::Test {
 protected:
  FixedResponseTest() {
    HttpResponse response{.content_type = "text/plain"};
    response.attached.emplace_back(std::string_view(text_));
    handler_ = Always(std::move(response));
  }

  HttpResponse Ask(const std::string& accepted) {
    auto request = std::make_shared<HttpRequest>();
    if (!accepted.empty()) request->headers = {{"accept-encoding", accepted}};
    HttpResponse received;
    handler_(request, [&received](HttpResponse response) { received = std::move(response); });
    return received;
  }

  static std::string BodyOf(const HttpResponse& response) {
    std::string body;
    for (const absl::string_view piece : BodyPieces(response)) body.append(piece.data(), piece.size());
    return body;
  }

  const std::string text_ = std::string(5000, 'x');
  HttpHandler handler_;
};

TEST_F(FixedResponseTest, IsCompressedOnce) {
  const HttpResponse first = Ask("deflate, br, gzip"), second = Ask("gzip");
  EXPECT_THAT(first.headers, Contains(Pair("content-encoding", "gzip")));
  EXPECT_EQ(first.attached[0].pieces()[0].data(), second.attached[0].pieces()[0].data()) << "the same bytes";
  std::string decoded;
  ContentDecoder decoder(ContentCoding::kGzip);
  const auto append = [&decoded](absl::string_view bytes) {
    decoded.append(bytes.data(), bytes.size());
    return true;
  };
  ASSERT_TRUE(decoder.Write(BodyOf(first), append).ok());
  EXPECT_EQ(decoded, text_);
}

TEST_F(FixedResponseTest, IsNotCompressedForEachRequest) {
  for (const char* accepted : {"", "identity", "deflate", "br", "gzip;q=0"}) {
    const HttpResponse response = Ask(accepted);
    EXPECT_THAT(response.headers, Not(Contains(Key("content-encoding")))) << accepted;
    EXPECT_FALSE(response.compressible) << accepted;
    EXPECT_EQ(BodyOf(response), text_) << accepted;
  }
}

}  // namespace
}  // namespace saccade::server
