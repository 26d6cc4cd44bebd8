#include "server/protocols/rest/openapi.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "saccade/v1/vision.pb.h"
#include "server/http/fixed_response.h"
#include "server/protocols/rest/media.h"
#include "server/protocols/rest/operations.h"
#include "server/protocols/rest/query.h"
#include "server/protocols/rest/request.h"
#include "server/protocols/rest/schemas.h"

namespace saccade::server {
namespace {

using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kSchemas[] = "#/components/schemas/";
constexpr char kBinary[] = "application/octet-stream";
constexpr char kFileRoute[] = "/v1/predict/{model}";
constexpr models::Task kTasks[] = {models::Task::kClassification, models::Task::kDetection,
                                   models::Task::kSegmentation,   models::Task::kStereo,
                                   models::Task::kActions,        models::Task::kRestoration};

Json Reference(absl::string_view schema) { return {{"$ref", absl::StrCat(kSchemas, schema)}}; }

// A body of JSON.
Json JsonContent(absl::string_view schema) { return {{"application/json", {{"schema", Reference(schema)}}}}; }

// "get_v2_models_model_stats".
std::string IdOf(const HttpRoute& route) {
  std::string id = absl::AsciiStrToLower(route.method);
  for (const absl::string_view part : absl::StrSplit(route.path, absl::ByAnyChar("/.{}"), absl::SkipEmpty()))
    absl::StrAppend(&id, "_", part);
  return id;
}

// "v2" for "/v2/models"; the page's files and others have none.
std::string TagOf(absl::string_view path) {
  if (path == "/v1" || absl::StartsWith(path, "/v1/")) return "saccade.v1";
  if (path == "/v2" || absl::StartsWith(path, "/v2/")) return "Open Inference Protocol";
  return "other";
}

Json PathParameters(absl::string_view path) {
  Json parameters = Json::array();
  for (const absl::string_view segment : absl::StrSplit(path, '/')) {
    if (segment.empty() || segment.front() != '{') continue;
    const std::string name(segment.substr(1, segment.size() - 2));
    parameters.push_back({{"name", name},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}, {"minLength", 1}}}});
  }
  return parameters;
}

Json QuerySchema(const FieldDescriptor& field) {
  // In a query, quotes make no difference.
  Json value = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64
                   ? Json{{"type", "integer"}, {"format", "int64"}}
                   : ScalarSchema(field, SchemaUse::kRequest);
  if (!field.is_repeated()) return value;
  return {{"type", "array"}, {"items", std::move(value)}};
}

// The parameters of all tasks. A name that several tasks have is one parameter.
Json FileParameters() {
  struct Merged {
    std::vector<std::string> tasks;
    Json schemas = Json::array();
  };
  std::vector<std::string> names;
  std::map<std::string, Merged> merged;
  const auto add = [&](const KnownParameter& parameter, const std::string& task) {
    Merged& entry = merged[parameter.name];
    if (entry.schemas.empty()) names.push_back(parameter.name);
    if (!task.empty()) entry.tasks.push_back(task);
    Json schema = QuerySchema(*parameter.field);
    if (std::find(entry.schemas.begin(), entry.schemas.end(), schema) == entry.schemas.end())
      entry.schemas.push_back(std::move(schema));
  };
  for (const KnownParameter& parameter : CommonParameters()) add(parameter, "");
  for (const models::Task task : kTasks) {
    for (const KnownParameter& parameter : OptionsOf(task)) add(parameter, models::TaskName(task));
  }
  Json parameters = Json::array();
  for (const std::string& name : names) {
    Merged& entry = merged[name];
    Json parameter = {{"name", name}, {"in", "query"}};
    if (!entry.tasks.empty())
      parameter["description"] = absl::StrCat("Only for ", absl::StrJoin(entry.tasks, ", "));
    parameter["schema"] =
        entry.schemas.size() == 1 ? entry.schemas[0] : Json{{"anyOf", std::move(entry.schemas)}};
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

bool IsInfer(const Operation& operation) { return operation.request == "v2.InferRequest"; }

// Null if the route takes no body.
Json RequestBody(const HttpRoute& route, const Operation& operation) {
  if (route.path == kFileRoute && route.method == "POST") {
    Json content = Json::object();
    for (const absl::string_view type : kFileTypes) content[std::string(type)] = Json::object();
    return {{"required", true}, {"content", std::move(content)}};
  }
  if (operation.request.empty()) return nullptr;
  Json content = JsonContent(operation.request);
  if (IsInfer(operation)) content[kBinary] = Json::object();
  const bool required = IsInfer(operation) || absl::StartsWith(operation.request, "v1.");
  return {{"required", required}, {"content", std::move(content)}};
}

Json Responses(const Operation& operation) {
  Json good = {{"description", "OK"}};
  if (absl::StrContains(operation.response, '/')) {
    good["content"] = {{std::string(operation.response), {{"schema", {{"type", "string"}}}}}};
  } else if (!operation.response.empty()) {
    good["content"] = JsonContent(operation.response);
  }
  if (IsInfer(operation)) good["content"][kBinary] = Json::object();
  Json responses = {{"200", std::move(good)}};
  if (operation.failure != 0) {
    responses[absl::StrCat(operation.failure)] = {{"description", std::string(operation.failure_reason)},
                                                  {"content", JsonContent("Error")}};
  }
  responses["default"] = {{"$ref", "#/components/responses/Error"}};
  return responses;
}

Json OperationJson(const HttpRoute& route) {
  static constexpr Operation kUndescribed{};
  const Operation* const found = FindOperation(route.method, route.path);
  const Operation& operation = found == nullptr ? kUndescribed : *found;
  Json json = {{"operationId", IdOf(route)},
               {"summary", std::string(operation.summary)},
               {"tags", Json::array({TagOf(route.path)})}};
  Json parameters = PathParameters(route.path);
  if (route.path == kFileRoute) {
    for (Json& parameter : FileParameters()) parameters.push_back(std::move(parameter));
  }
  if (IsInfer(operation)) {
    parameters.push_back({{"name", kJsonLengthHeader},
                          {"in", "header"},
                          {"description", "How many bytes of the body are JSON; binary tensors follow"},
                          {"schema", {{"type", "integer"}, {"minimum", 0}}}});
  }
  if (!parameters.empty()) json["parameters"] = std::move(parameters);
  if (Json body = RequestBody(route, operation); !body.is_null()) json["requestBody"] = std::move(body);
  json["responses"] = Responses(operation);
  return json;
}

Json Components() {
  Json schemas = Json::parse(WrittenSchemas());
  AddSchema(*v1::PredictRequest::descriptor(), SchemaUse::kRequest, schemas);
  AddSchema(*v1::PredictResponse::descriptor(), SchemaUse::kResponse, schemas);
  AddSchema(*v1::ListModelsResponse::descriptor(), SchemaUse::kResponse, schemas);
  const Json retry = {{"description", "Seconds to wait before a retry; with 429 and 503"},
                      {"schema", {{"type", "string"}, {"pattern", "^[0-9]+$"}}}};
  return {
      {"schemas", std::move(schemas)},
      {"responses",
       {{"Error",
         {{"description", "The request was refused or has failed"},
          {"headers", {{"Retry-After", retry}}},
          {"content", JsonContent("Error")}}}}},
      {"securitySchemes",
       {{"token", {{"type", "http"}, {"scheme", "bearer"}, {"description", "Needed with --token-file"}}}}}};
}

}  // namespace

std::string OpenApiDocument(absl::Span<const HttpRoute> routes, absl::Span<const HttpRoute> metrics_routes,
                            absl::string_view server_version) {
  Json paths = Json::object();
  for (const HttpRoute& route : routes)
    paths[route.path][absl::AsciiStrToLower(route.method)] = OperationJson(route);
  const Json metrics_servers =
      Json::array({{{"url", "http://{host}:{port}"},
                    {"description", "The metrics port"},
                    {"variables", {{"host", {{"default", "localhost"}}}, {"port", {{"default", "8002"}}}}}}});
  for (const HttpRoute& route : metrics_routes) {
    const std::string method = absl::AsciiStrToLower(route.method);
    if (paths.contains(route.path) && paths[route.path].contains(method)) continue;
    Json operation = OperationJson(route);
    operation["servers"] = metrics_servers;
    paths[route.path][method] = std::move(operation);
  }
  const Json document = {{"openapi", "3.1.0"},
                         {"info",
                          {{"title", "Saccade"},
                           {"description", "Vision models: pictures in and results out, or tensors."},
                           {"version", std::string(server_version)}}},
                         {"servers", Json::array({{{"url", "/"}}})},
                         // An empty one says that a token is needed only if the daemon has tokens.
                         {"security", Json::array({Json::object(), {{"token", Json::array()}}})},
                         {"paths", std::move(paths)},
                         {"components", Components()}};
  return document.dump();
}

HttpRoute OpenApiRoute(std::vector<HttpRoute> routes, absl::Span<const HttpRoute> metrics_routes,
                       absl::string_view server_version) {
  HttpRoute route{.method = "GET", .path = "/openapi.json", .handler = nullptr};
  routes.push_back(route);
  const auto document =
      std::make_shared<const std::string>(OpenApiDocument(routes, metrics_routes, server_version));
  HttpResponse response;
  response.attached.emplace_back(std::string_view(*document), document);
  route.handler = Always(std::move(response));
  return route;
}

}  // namespace saccade::server
