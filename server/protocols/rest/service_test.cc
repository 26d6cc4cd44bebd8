#include "server/protocols/rest/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/protocols/rest/vision.h"
#include "server/protocols/testing/model_pipeline.h"
#include "server/tracing/call_watch.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// How long requests of these tests have waited when they are handled.
constexpr absl::Duration kWaited = absl::Hours(1);

class RestServiceTest : public testing::ModelPipelineTest {
 protected:
  void SetUp() override {
    WriteIdentity(/*max_batch_size=*/1);
    LoadModels();
    routes_ = rest_.Routes();
    for (HttpRoute& route : vision_.Routes()) routes_.push_back(std::move(route));
  }

  // The response of a route to a request for a model. REQUIRES: the route answers on this thread.
  HttpResponse Ask(const std::string& method, const std::string& path, const std::string& content_type,
                   const std::string& model) {
    HttpRequest request;
    request.method = method;
    request.headers = {{"content-type", content_type}};
    request.path_values = {{"model", model}};
    request.arrival = Clock::Real()->Now() - kWaited;
    request.cancellation = std::make_shared<Cancellation>();
    HttpResponse answer{.status = 0};
    for (const HttpRoute& route : routes_) {
      if (route.method != method || route.path != path) continue;
      route.handler(std::make_shared<const HttpRequest>(request),
                    [&answer](HttpResponse response) { answer = std::move(response); });
    }
    return answer;
  }

  Pipeline::Deps WatchedDeps() const {
    Pipeline::Deps deps = pipeline_.deps();
    deps.watch = &watch_;
    return deps;
  }

  std::vector<CallFacts> logged_;
  const CallWatch watch_{
      {.clock = Clock::Real(), .access_log = [this](const CallFacts& facts) { logged_.push_back(facts); }}};
  Pipeline watched_{WatchedDeps()};
  SharedMemory shared_memory_{{}};
  Inference inference_{&watched_, &catalog_, &shared_memory_, StatusCodes()};
  RetryJitter jitter_{1};
  RestService rest_{{.server_name = "",
                     .server_version = "",
                     .max_message_bytes = 1 << 20,
                     .retry_jitter = &jitter_,
                     .live = nullptr,
                     .ready = nullptr},
                    {.inference = &inference_,
                     .pipeline = &watched_,
                     .catalog = &catalog_,
                     .shared_memory = &shared_memory_}};
  VisionRest vision_{
      {.pipeline = &watched_, .catalog = &catalog_, .retry_jitter = &jitter_, .max_message_bytes = 1 << 20}};
  std::vector<HttpRoute> routes_;
};

TEST_F(RestServiceTest, NamesOfModelsAreBounded) {
  const struct {
    const char* method;
    const char* path;
    const char* content_type;
    const char* field;
  } kRoutes[] = {{"GET", "/v2/models/{model}", "", "model_name"},
                 {"GET", "/v2/models/{model}/ready", "", "model_name"},
                 {"GET", "/v2/models/{model}/config", "", "model_name"},
                 {"GET", "/v2/models/{model}/stats", "", "model_name"},
                 {"POST", "/v2/models/{model}/infer", "application/json", "model_name"},
                 {"POST", "/v1/predict/{model}", "image/png", "model"}};
  for (const auto& route : kRoutes) {
    const auto ask = [&](size_t bytes) {
      return Ask(route.method, route.path, route.content_type, std::string(bytes, 'm'));
    };
    const HttpResponse refused = ask(1025);
    EXPECT_EQ(refused.status, 400) << route.path;
    EXPECT_THAT(refused.body,
                HasSubstr(std::string(route.field) + ": has 1025 bytes; at most 1024 are accepted"));
    EXPECT_THAT(ask(1024).body, ::testing::Not(HasSubstr("bytes; at most"))) << route.path;
  }
}

// A client that waits for a 100 (Continue) before it sends the body.
TEST_F(RestServiceTest, HeadsAreJudgedBeforeTheBodyIsAskedFor) {
  const auto judge = [this](const std::string& path, const std::string& content_type,
                            const std::string& model) {
    const auto route = std::find_if(routes_.begin(), routes_.end(), [&path](const HttpRoute& candidate) {
      return candidate.method == "POST" && candidate.path == path;
    });
    HttpRequest request;
    request.method = "POST";
    request.headers = {{"content-type", content_type}};
    request.path_values = {{"model", model}};
    request.arrival = Clock::Real()->Now();
    return route->check_head(request);
  };
  const std::pair<const char*, const char*> kOfModels[] = {{"/v1/predict/{model}", "image/png"},
                                                           {"/v2/models/{model}/infer", "application/json"}};
  for (const auto& [path, content_type] : kOfModels) {
    logged_.clear();
    const auto unknown = judge(path, content_type, "unknown");
    ASSERT_TRUE(unknown) << path;
    EXPECT_EQ(unknown->status, 404) << path;
    EXPECT_THAT(unknown->body, HasSubstr("no model 'unknown'"));
    EXPECT_EQ(logged_.size(), 1u) << path;
    EXPECT_FALSE(judge(path, content_type, "identity")) << path;
    const auto wrong_type = judge(path, "text/html", "identity");
    ASSERT_TRUE(wrong_type) << path;
    EXPECT_EQ(wrong_type->status, 415) << path;
    const auto long_name = judge(path, content_type, std::string(1025, 'm'));
    ASSERT_TRUE(long_name) << path;
    EXPECT_EQ(long_name->status, 400) << path;
  }
  EXPECT_EQ(judge("/v1/predict", "image/png", "")->status, 415);
  EXPECT_FALSE(judge("/v1/predict", "application/json", ""));
  EXPECT_EQ(judge("/v2/repository/index", "image/png", "")->status, 415);
  EXPECT_FALSE(judge("/v2/repository/index", "application/json", ""));
}

TEST_F(RestServiceTest, TheListOfModelsIsTheCatalogs) {
  const HttpResponse listed = Ask("GET", "/v1/models", "", "");
  EXPECT_EQ(listed.status, 200);
  EXPECT_THAT(listed.body, HasSubstr(R"("name":"identity")"));
  EXPECT_THAT(listed.body, HasSubstr(R"("state":"READY")"));
  // It is compressed once, and not by the front for each request.
  EXPECT_FALSE(listed.compressible);
}

TEST_F(RestServiceTest, FilesAndTensorsAreNotParsed) {
  const HttpHeaders headers = {{"Inference-Header-Content-Length", "20"}};
  const std::string body(1000, 'x');
  for (const HttpRoute& route : routes_) {
    const size_t parsed = route.bytes_to_parse == nullptr ? 1000 : route.bytes_to_parse(headers, body);
    const size_t expected = route.path == "/v1/predict/{model}"    ? 0
                            : absl::EndsWith(route.path, "/infer") ? 20
                                                                   : 1000;
    EXPECT_EQ(parsed, expected) << route.path;
  }
}

TEST_F(RestServiceTest, ABodyThatNamesSharedMemoryIsLargeIfThatIsAllowed) {
  SharedMemory allowed{{.allowed = true, .folder = ::testing::TempDir()}};
  RestService sharing(
      {.server_name = "", .server_version = "", .live = nullptr, .ready = nullptr},
      {.inference = &inference_, .pipeline = &watched_, .catalog = &catalog_, .shared_memory = &allowed});
  const std::string body = R"({"shared_memory_region":"r"})";
  const auto bytes = [&body](const std::vector<HttpRoute>& routes) {
    const auto infer = std::find_if(routes.begin(), routes.end(), [](const HttpRoute& route) {
      return route.path == "/v2/models/{model}/infer";
    });
    return infer->bytes_to_parse({}, body);
  };
  EXPECT_EQ(bytes(sharing.Routes()), SIZE_MAX);
  EXPECT_EQ(bytes(routes_), body.size());
}

// The time that a request waits for a work pool is part of its call's.
TEST_F(RestServiceTest, CallsBeginWhenTheirRequestArrived) {
  const std::pair<const char*, const char*> kRoutes[] = {
      {"/v1/predict", "application/json"},
      {"/v1/predict/{model}", "image/png"},
      {"/v2/models/{model}/infer", "application/json"},
      {"/v2/models/{model}/versions/{version}/infer", "application/json"}};
  for (const auto& [path, content_type] : kRoutes) {
    logged_.clear();
    EXPECT_EQ(Ask("POST", path, content_type, "unknown").status / 100, 4) << path;
    ASSERT_EQ(logged_.size(), 1u) << path;
    EXPECT_GE(logged_[0].total, kWaited) << path;
    EXPECT_LT(logged_[0].total, kWaited + absl::Minutes(10)) << path;
  }
}

}  // namespace
}  // namespace saccade::server
