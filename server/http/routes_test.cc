#include "server/http/routes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

HttpHandler Named(const std::string& name) {
  return Responding([name](const HttpRequest&) { return HttpResponse{200, "text/plain", name}; });
}

Routes TestRoutes() {
  return *Routes::Create({{"GET", "/hello", Named("hello")},
                          {"POST", "/echo", Named("echo")},
                          {"GET", "/models/{model}", Named("model"), true},
                          {"GET", "/models/stats", Named("stats")},
                          {"POST", "/models/{model}/versions/{version}/infer", Named("infer")}});
}

HttpResponse Refusal(const std::string& method, const std::string& path) {
  const Routes routes = TestRoutes();
  auto found = routes.Find(method, path);
  if (!std::holds_alternative<HttpResponse>(found)) return {};
  return std::get<HttpResponse>(std::move(found));
}

// The name of the handler, and the values it gets from the path.
std::pair<std::string, std::map<std::string, std::string>> Found(const std::string& method,
                                                                 const std::string& path) {
  const Routes routes = TestRoutes();
  auto found = routes.Find(method, path);
  if (!std::holds_alternative<Routes::Match>(found)) return {};
  const auto& match = std::get<Routes::Match>(found);
  std::string name;
  (*match.handler)(std::make_shared<HttpRequest>(), [&](HttpResponse response) { name = response.body; });
  return {name, match.path_values};
}

TEST(RoutesTest, NamesInThePathAreTheHandlers) {
  EXPECT_THAT(Found("GET", "/hello").first, "hello");
  EXPECT_THAT(Found("HEAD", "/hello").first, "hello");
  EXPECT_THAT(Found("GET", "/models/tiny").second, ElementsAre(Pair("model", "tiny")));
  EXPECT_THAT(Found("GET", "/models/a%20b%2Fc%c3%a4").second, ElementsAre(Pair("model", "a b/c\xc3\xa4")));
  EXPECT_THAT(Found("POST", "/models/tiny/versions/3/infer").second,
              ElementsAre(Pair("model", "tiny"), Pair("version", "3")));
}

TEST(RoutesTest, FixedSegmentsGoBeforeNames) { EXPECT_EQ(Found("GET", "/models/stats").first, "stats"); }

TEST(RoutesTest, AMatchSaysItsRouteAndWhetherItBlocks) {
  const Routes routes = TestRoutes();
  const auto model = std::get<Routes::Match>(routes.Find("GET", "/models/tiny"));
  EXPECT_EQ(model.route, "/models/{model}");
  EXPECT_TRUE(model.may_block);
  EXPECT_FALSE(std::get<Routes::Match>(routes.Find("GET", "/hello")).may_block);
}

TEST(RoutesTest, WhatIsNotAPathIsRefused) {
  for (const char* path :
       {"/models/", "/models/a/", "/models/a/b", "/models//versions/1/infer", "hello", "*", ""}) {
    EXPECT_EQ(Refusal("GET", path).status, 404) << path;
  }
  for (const char* path : {"/models/%", "/models/%4", "/models/%zz", "/%"}) {
    EXPECT_EQ(Refusal("GET", path).status, 400) << path;
  }
}

TEST(RoutesTest, TheErrorForAnUnknownPathListsTheKnownOnes) {
  const HttpResponse refusal = Refusal("GET", "/nowhere");
  EXPECT_EQ(refusal.status, 404);
  EXPECT_THAT(refusal.body, HasSubstr("no such path: /nowhere; there are /echo, /hello, /models/stats, "));
  EXPECT_LT(Refusal("GET", std::string(10'000, '/')).body.size(), 500u);
}

TEST(RoutesTest, MethodsAreChecked) {
  const HttpResponse refusal = Refusal("GET", "/echo");
  EXPECT_EQ(refusal.status, 405);
  EXPECT_THAT(refusal.body, HasSubstr("/echo does not take GET; use POST"));
  EXPECT_THAT(refusal.headers, ElementsAre(Pair("Allow", "POST, OPTIONS")));
  EXPECT_EQ(Refusal("HEAD", "/echo").status, 405);
  const HttpResponse options = Refusal("OPTIONS", "/hello");
  EXPECT_EQ(options.status, 200);
  EXPECT_THAT(options.headers, ElementsAre(Pair("Allow", "GET, HEAD, OPTIONS")));
}

TEST(RoutesTest, RoutesAreChecked) {
  EXPECT_FALSE(Routes::Create({{"PUT", "/a", Named("")}}).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "a", Named("")}}).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "", Named("")}}).ok());
  EXPECT_FALSE(Routes::Create({{"GET", "/a", Named("")}, {"GET", "/a", Named("")}}).ok());
  EXPECT_TRUE(Routes::Create({{"GET", "/a", Named("")}, {"POST", "/a", Named("")}}).ok());
}

}  // namespace
}  // namespace saccade::server
