#include "server/http/routes.h"

#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

HttpResponse Hello(const HttpRequest&) { return {200, "text/plain", "hello"}; }

Routes TestRoutes() {
  return *Routes::Create(
      {{"GET", "/hello", Hello},
       {"POST", "/echo",
        [](const HttpRequest& r) { return HttpResponse{200, "text/plain", std::string(r.body)}; }},
       {"GET", "/throw", [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("the inside"); }}},
      100);
}

RequestHead Head(const std::string& method, const std::string& path, std::vector<std::string> lengths = {}) {
  RequestHead head;
  head.method = method;
  head.path = path;
  head.content_lengths = std::move(lengths);
  return head;
}

int StatusOf(const RequestHead& head) {
  const auto refusal = TestRoutes().Refusal(head);
  return refusal ? refusal->status : 200;
}

TEST(HttpErrorTest, AnyBytesBecomeJson) {
  EXPECT_EQ(HttpError(400, "say \"no\"\n").body, R"({"error":"say \"no\"\n"})");
  EXPECT_EQ(HttpError(400, "\xFF").body, "{\"error\":\"\xEF\xBF\xBD\"}");
}

TEST(RoutesTest, AnUnknownPathIsToldTheKnownOnes) {
  const auto refusal = TestRoutes().Refusal(Head("GET", "/nowhere"));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 404);
  EXPECT_EQ(refusal->body, R"({"error":"no such path: /nowhere; there are /echo, /hello, /throw"})");
  EXPECT_LT(TestRoutes().Refusal(Head("GET", std::string(10'000, '/')))->body.size(), 500u);
}

TEST(RoutesTest, MethodsAreChecked) {
  EXPECT_EQ(StatusOf(Head("GET", "/hello")), 200);
  EXPECT_EQ(StatusOf(Head("HEAD", "/hello")), 200);
  EXPECT_EQ(StatusOf(Head("DELETE", "/hello")), 405);
  const auto refusal = TestRoutes().Refusal(Head("GET", "/echo"));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 405);
  EXPECT_THAT(refusal->body, HasSubstr("/echo does not take GET; use POST"));
}

TEST(RoutesTest, BodiesAreBoundedBeforeTheyAreRead) {
  EXPECT_EQ(StatusOf(Head("POST", "/echo", {"0"})), 200);
  EXPECT_EQ(StatusOf(Head("POST", "/echo", {"100"})), 200);
  EXPECT_EQ(StatusOf(Head("POST", "/echo", {"101"})), 413);
  EXPECT_EQ(StatusOf(Head("POST", "/echo")), 411);
  EXPECT_EQ(StatusOf(Head("GET", "/hello", {"0"})), 200);
  EXPECT_EQ(StatusOf(Head("GET", "/hello", {"1"})), 400);
  for (const char* length : {"", "-1", "1x", "99999999999999999999", "5, 5"}) {
    EXPECT_EQ(StatusOf(Head("POST", "/echo", {length})), 400) << length;
  }
  EXPECT_EQ(StatusOf(Head("POST", "/echo", {"5", "5"})), 400);
}

TEST(RoutesTest, EncodedBodiesAreRefused) {
  RequestHead chunked = Head("POST", "/echo");
  chunked.has_transfer_encoding = true;
  EXPECT_EQ(StatusOf(chunked), 411);
  RequestHead packed = Head("POST", "/echo", {"5"});
  packed.has_content_encoding = true;
  EXPECT_EQ(StatusOf(packed), 415);
}

TEST(RoutesTest, AnExceptionIsA500WithoutItsText) {
  const HttpResponse response = TestRoutes().Handle({"GET", "/throw", ""});
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, R"({"error":"internal error"})");
}

TEST(RoutesTest, RoutesAreChecked) {
  EXPECT_FALSE(Routes::Create({{"PUT", "/a", Hello}}, 1).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "a", Hello}}, 1).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "", Hello}}, 1).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "/a", Hello}, {"GET", "/a", Hello}}, 1).ok());
  EXPECT_TRUE(Routes::Create({{"GET", "/a", Hello}, {"POST", "/a", Hello}}, 1).ok());
}

}  // namespace
}  // namespace saccade::server
