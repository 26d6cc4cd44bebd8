// What the server's options change: who may have what, and where it listens.
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "server/http/test_client.h"

namespace saccade::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<HttpRoute> Echo() {
  return {{"POST", "/echo/{name}", [](const HttpRequest& r) {
             return HttpResponse{200, "text/plain", absl::StrCat(r.client->Address(), " ", r.body)};
           }}};
}

std::unique_ptr<HttpServer> Serve(HttpServerOptions options) {
  if (options.host == HttpServerOptions().host) options.host = "127.0.0.1";
  auto server = HttpServer::Start(options, Echo());
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpGuardTest, AnswersBeforeTheBodyHasCome) {
  HttpServerOptions options;
  std::atomic<int> asked = 0;
  options.guard = [&asked](absl::string_view method, absl::string_view route,
                           const HttpHeaders& headers) -> std::optional<HttpResponse> {
    ++asked;
    EXPECT_EQ(method, "POST");
    EXPECT_EQ(route, "/echo/{name}");
    if (FindHeader(headers, "Authorization") == "Bearer t") return std::nullopt;
    return HttpError(401, "who are you?");
  };
  const auto server = Serve(options);
  TestClient refused(server->port());
  ASSERT_TRUE(refused.Send("POST /echo/a HTTP/1.1\r\nContent-Length: 1000\r\n\r\nonly this"));
  const std::string answer = refused.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(answer, EndsWith("who are you?\"}")) << "and what was left of the body is no request";
  EXPECT_THAT(Ask(*server, "POST /echo/a HTTP/1.1\r\nAuthorization: Bearer t\r\nContent-Length: 2\r\n\r\nok"),
              EndsWith("\r\n\r\n127.0.0.1 ok"));
  EXPECT_EQ(asked, 2);
}

// A path that nobody serves is told without asking who wants it: there is nothing to protect.
TEST(HttpGuardTest, IsNotAskedForPathsThatThereAreNot) {
  HttpServerOptions options;
  options.guard = [](absl::string_view, absl::string_view, const HttpHeaders&) {
    ADD_FAILURE();
    return std::optional<HttpResponse>();
  };
  EXPECT_THAT(Ask(*Serve(options), "GET /nowhere HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
}

TEST(HttpOptionsTest, RoutesThatCannotBeServedAreAnError) {
  std::vector<HttpRoute> routes = Echo();
  routes.push_back({"POST", "no slash", routes[0].handler});
  EXPECT_EQ(HttpServer::Start({}, std::move(routes)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HttpOptionsTest, ClientsOfBothKindsAreNamedByTheirAddress) {
  HttpServerOptions options;
  options.host = "::";
  auto server = HttpServer::Start(options, Echo());
  if (!server.ok()) GTEST_SKIP() << "this machine has no IPv6: " << server.status();
  EXPECT_GT((*server)->port(), 0);
  EXPECT_THAT(Ask(**server, "POST /echo/a HTTP/1.1\r\nContent-Length: 2\r\n\r\nok"),
              HasSubstr("127.0.0.1 ok"));
}

}  // namespace
}  // namespace saccade::server
