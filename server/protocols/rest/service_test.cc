#include "server/protocols/rest/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/protocols/rest/vision.h"
#include "server/protocols/testing/model_pipeline.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

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
    request.cancellation = std::make_shared<Cancellation>();
    HttpResponse answer{.status = 0};
    for (const HttpRoute& route : routes_) {
      if (route.method != method || route.path != path) continue;
      route.handler(std::make_shared<const HttpRequest>(request),
                    [&answer](HttpResponse response) { answer = std::move(response); });
    }
    return answer;
  }

  SharedMemory shared_memory_{{}};
  Inference inference_{&pipeline_, &catalog_, &shared_memory_, StatusCodes()};
  RetryJitter jitter_{1};
  RestService rest_{{.server_name = "",
                     .server_version = "",
                     .max_message_bytes = 1 << 20,
                     .retry_jitter = &jitter_,
                     .live = nullptr,
                     .ready = nullptr},
                    {.inference = &inference_,
                     .pipeline = &pipeline_,
                     .catalog = &catalog_,
                     .shared_memory = &shared_memory_,
                     .clock = Clock::Real()}};
  VisionRest vision_{
      {.pipeline = &pipeline_, .catalog = &catalog_, .retry_jitter = &jitter_, .max_message_bytes = 1 << 20}};
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

}  // namespace
}  // namespace saccade::server
