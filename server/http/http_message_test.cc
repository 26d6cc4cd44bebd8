#include "server/http/http_message.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

TEST(HttpMessageTest, EveryStatusThatIsAnsweredHasItsReason) {
  EXPECT_EQ(HttpReason(200), "OK");
  EXPECT_EQ(HttpReason(429), "Too Many Requests");
  for (const int status :
       {400, 401, 403, 404, 405, 408, 409, 413, 415, 417, 421, 429, 431, 500, 501, 503, 504, 505})
    EXPECT_FALSE(HttpReason(status).empty()) << status;
  EXPECT_EQ(HttpReason(299), "");
}

TEST(HttpMessageTest, HeadersAreFoundWithoutCaseAndTheFirstCounts) {
  const HttpHeaders headers = {{"X-A", "1"}, {"x-a", "2"}, {"Empty", ""}};
  EXPECT_EQ(FindHeader(headers, "x-A"), "1");
  EXPECT_EQ(FindHeader(headers, "empty"), "");
  EXPECT_EQ(FindHeader(headers, "X-B"), std::nullopt);
  HttpRequest request;
  EXPECT_EQ(request.Header("X-A"), std::nullopt) << "it brought none";
  request.headers = headers;
  EXPECT_EQ(request.Header("x-a"), "1");
}

TEST(HttpMessageTest, AnErrorIsJsonWhateverBytesItTells) {
  const HttpResponse error = HttpError(400, std::string("no '\xFF\"\n'"));
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.content_type, "application/json");
  EXPECT_THAT(error.body, HasSubstr("\\\"\\n"));
  EXPECT_EQ(HttpError(400, "say \"no\"\n").body, R"({"error":"say \"no\"\n"})");
  EXPECT_EQ(HttpError(400, "\xFF").body, "{\"error\":\"\xEF\xBF\xBD\"}");
}

TEST(HttpMessageTest, AResponseIsTheReply) {
  int status = 0;
  const HttpHandler handler = Responding(
      [](const HttpRequest& request) { return HttpError(request.method == "GET" ? 404 : 500, ""); });
  HttpRequest request;
  request.method = "GET";
  handler(std::make_shared<HttpRequest>(request), [&](HttpResponse response) { status = response.status; });
  EXPECT_EQ(status, 404);
}

}  // namespace
}  // namespace saccade::server
