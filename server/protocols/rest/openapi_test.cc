#include "server/protocols/rest/openapi.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/page/page.h"
#include "server/protocols/rest/capture.h"
#include "server/protocols/rest/drift.h"
#include "server/protocols/rest/live_load.h"
#include "server/protocols/rest/operations.h"
#include "server/protocols/rest/samples.h"
#include "server/protocols/rest/service.h"
#include "server/protocols/rest/shadow.h"
#include "server/protocols/rest/vision.h"

namespace saccade::server {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

std::string Name(absl::string_view method, absl::string_view path) {
  return absl::StrCat(absl::AsciiStrToUpper(method), " ", path);
}

// The routes of both ports, as the daemon has them. Their handlers are never called.
struct Ports {
  SharedMemory shared_memory{{}};
  RestService rest{{}, {nullptr, nullptr, nullptr, &shared_memory}};
  VisionRest vision{{}};
  std::vector<HttpRoute> http;
  std::vector<HttpRoute> metrics;

  Ports() {
    http = rest.Routes();
    for (std::vector<HttpRoute> more : {vision.Routes(),
                                        PageRoutes(),
                                        {LiveLoadRoute(nullptr, nullptr, {})},
                                        {DriftRoute(nullptr, nullptr)},
                                        ShadowRoutes(nullptr, nullptr),
                                        CaptureRoutes(nullptr, nullptr),
                                        SampleRoutes({})})
      http.insert(http.end(), more.begin(), more.end());
    for (const HttpRoute& route : http) {
      if (absl::StartsWith(route.path, "/v2/health/")) metrics.push_back(route);
    }
    metrics.push_back({"GET", "/metrics", nullptr});
    http.push_back(OpenApiRoute(http, metrics, "1.2.3"));
  }

  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const HttpRoute& route : http) names.insert(Name(route.method, route.path));
    for (const HttpRoute& route : metrics) names.insert(Name(route.method, route.path));
    return names;
  }

  Json Document() const {
    Json document;
    http.back().handler(std::make_shared<const HttpRequest>(), [&document](const HttpResponse& response) {
      std::string text(response.attached.at(0).size(), ' ');
      response.attached[0].CopyTo(text.data());
      document = Json::parse(text);
    });
    return document;
  }
};

TEST(RestOpenApiTest, EveryRouteIsDescribedAndNothingElse) {
  const Ports ports;
  const Json document = ports.Document();
  std::set<std::string> described;
  for (const auto& [path, operations] : document["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      described.insert(Name(method, path));
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << method << " " << path;
    }
  }
  EXPECT_EQ(described, ports.Names());
  EXPECT_EQ(document["info"]["version"], "1.2.3");
}

TEST(RestOpenApiTest, EveryDescriptionHasARoute) {
  const Ports ports;
  const std::set<std::string> names = ports.Names();
  for (const Operation& operation : Operations())
    EXPECT_EQ(names.count(Name(operation.method, operation.path)), 1u) << operation.method << operation.path;
}

TEST(RestOpenApiTest, TheMetricsPortHasItsOwnServer) {
  const Json paths = Ports().Document()["paths"];
  EXPECT_TRUE(paths["/metrics"]["get"].contains("servers"));
  EXPECT_FALSE(paths["/v2/health/live"]["get"].contains("servers"));
}

// Calls `visit` with every object in the document.
template <typename Visit>
void ForEachObject(const Json& json, const Visit& visit) {
  if (json.is_object()) visit(json);
  if (json.is_structured()) {
    for (const Json& child : json) ForEachObject(child, visit);
  }
}

TEST(RestOpenApiTest, EveryReferenceLeadsSomewhere) {
  const Json document = Ports().Document();
  std::set<std::string> used;
  ForEachObject(document, [&](const Json& object) {
    if (!object.contains("$ref")) return;
    const std::string reference = object["$ref"];
    ASSERT_EQ(reference[0], '#');
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
    used.insert(reference);
  });
  for (const auto& [name, schema] : document["components"]["schemas"].items()) {
    EXPECT_EQ(used.count("#/components/schemas/" + name), 1u) << name << " is not used";
    EXPECT_TRUE(schema.is_object()) << name;
  }
}

TEST(RestOpenApiTest, OperationsHaveDifferentIdsAndAllPathParameters) {
  std::set<std::string> ids;
  for (const auto& [path, operations] : Ports().Document()["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      EXPECT_TRUE(ids.insert(operation["operationId"]).second) << operation["operationId"];
      std::string named = path;
      for (const Json& parameter : operation.value("parameters", Json::array())) {
        if (parameter["in"] != "path") continue;
        EXPECT_TRUE(absl::StrContains(named, absl::StrCat("{", parameter["name"].get<std::string>(), "}")));
        named.erase(named.find('{'), 1);
      }
      EXPECT_EQ(named.find('{'), std::string::npos) << path;
    }
  }
}

TEST(RestOpenApiTest, SchemasFollowProtobufsJson) {
  const Json schemas = Ports().Document()["components"]["schemas"];
  const Json& answer = schemas["v1.PredictResponse"];
  EXPECT_EQ(answer["additionalProperties"], false);
  // Fields without presence are always written; 64 bits are a string.
  EXPECT_EQ(answer["required"],
            Json({"model", "version", "request_id", "batch_size", "picture_width", "picture_height"}));
  EXPECT_EQ(answer["properties"]["version"]["type"], "string");
  EXPECT_EQ(answer["properties"]["detections"]["$ref"], "#/components/schemas/v1.Detections");
  EXPECT_EQ(schemas["v1.Timings"]["properties"]["total"]["type"], "string");
  EXPECT_EQ(schemas["v1.Model"]["properties"]["options"]["additionalProperties"]["type"], "string");
  const Json& request = schemas["v1.request.PredictRequest"];
  EXPECT_FALSE(request.contains("required"));
  EXPECT_EQ(request["properties"]["encoded"]["contentEncoding"], "base64");
  EXPECT_EQ(request["properties"]["version"]["anyOf"].size(), 2u);
  const Json& detection = schemas["v1.request.DetectionOptions"]["properties"];
  EXPECT_EQ(detection["classes"]["type"], "array");
  EXPECT_EQ(detection["masks"]["enum"].size(), 5u);
}

TEST(RestOpenApiTest, FilesHaveTheOptionsOfAllTasksAsParameters) {
  const Json operation = Ports().Document()["paths"]["/v1/predict/{model}"]["post"];
  std::set<std::string> names;
  for (const Json& parameter : operation["parameters"]) {
    EXPECT_TRUE(names.insert(parameter["name"]).second) << parameter["name"];
    if (parameter["name"] == "format") {
      EXPECT_EQ(parameter["schema"]["anyOf"].size(), 2u);
      EXPECT_EQ(parameter["description"], "Only for segmentation, stereo");
    }
    if (parameter["name"] == "classes") {
      EXPECT_EQ(parameter["schema"]["type"], "array");
    }
    if (parameter["name"] == "version") {
      EXPECT_EQ(parameter["schema"]["type"], "integer");
    }
  }
  for (const char* name : {"model", "version", "request_id", "region.x", "explain.layer", "score_threshold",
                           "size.network", "type", "probability_threshold"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  EXPECT_TRUE(operation["requestBody"]["content"].contains("image/jpeg"));
}

TEST(RestOpenApiTest, ARouteWithoutDescriptionIsStillThere) {
  const std::vector<HttpRoute> routes = {{"GET", "/new", nullptr}};
  const Json document = Json::parse(OpenApiDocument(routes, {}, "1"));
  EXPECT_THAT(document["paths"]["/new"]["get"]["responses"], Not(IsEmpty()));
}

}  // namespace
}  // namespace saccade::server
