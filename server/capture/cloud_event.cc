#include "server/capture/cloud_event.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/capture/record_format.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

constexpr char kRequestType[] = "org.kubeflow.serving.inference.request";
constexpr char kAnswerType[] = "org.kubeflow.serving.inference.response";
// Messages of gRPC have no media type of their own.
constexpr char kProtobuf[] = "application/protobuf";

using Headers = CapturedCall::Headers;

std::string ContentType(const Headers& headers, const CapturedCall& call) {
  for (const auto& [name, value] : headers) {
    if (name == "content-type") return value;
  }
  return call.transport == "grpc" ? kProtobuf : "application/octet-stream";
}

// As KServe's: a JSON object of lists, by header.
std::string Metadata(const CapturedCall& call, const Headers& headers, const CaptureOptions& options,
                     absl::string_view body, int64_t bytes) {
  using Json = nlohmann::ordered_json;
  const auto list = [](std::string text) { return Json::array({std::move(text)}); };
  Json json = Json::object();
  for (const auto& [name, value] : headers) json[name] = list(value);
  json["saccade-target"] = list(call.target);
  json["saccade-model-version"] = list(absl::StrCat(call.served.version));
  json["saccade-status"] = list(absl::StatusCodeToString(call.status.code()));
  json["saccade-bytes"] = list(absl::StrCat(bytes));
  if (const ModelIdentity* identity = call.served.identity.get()) {
    json["saccade-weights-sha256"] = list(identity->weights_sha256);
    json["saccade-precision"] = list(identity->precision);
    json["saccade-instruction-set"] = list(identity->instruction_set);
  }
  if (options.pixels == CapturedPixels::kHash) json["saccade-sha256"] = list(Sha256Hex(body));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string EncodeAttribute(absl::string_view value) {
  std::string encoded;
  for (const char c : value) {
    if (c > ' ' && c < '\x7f' && c != '"' && c != '%') {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::vector<CloudEvent> ToCloudEvents(CapturedCall call, const std::string& id,
                                      const CaptureOptions& options) {
  std::vector<CloudEvent> events;
  const auto add = [&](const char* type, absl::Time time, const Headers& headers, std::string body,
                       int64_t bytes) {
    CloudEvent event;
    const auto attribute = [&event](absl::string_view name, const std::string& value) {
      // CloudEvents does not allow empty attributes.
      if (!value.empty()) event.headers.emplace_back(absl::StrCat("ce-", name), EncodeAttribute(value));
    };
    attribute("specversion", "1.0");
    attribute("id", id);
    attribute("type", type);
    attribute("source", absl::StrCat("saccaded/", options.id));
    attribute("time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E9SZ", time, absl::UTCTimeZone()));
    attribute("inferenceservicename", call.model);
    attribute("namespace", options.kubernetes_namespace);
    attribute("component", "predictor");
    attribute("endpoint", "default");
    attribute("metadata", Metadata(call, headers, options, body, bytes));
    event.headers.emplace_back("content-type", ContentType(headers, call));
    if (options.pixels == CapturedPixels::kFull) event.body = std::move(body);
    events.push_back(std::move(event));
  };
  add(kRequestType, call.arrival, call.headers, std::move(call.request), call.request_bytes);
  if (call.status.ok())
    add(kAnswerType, call.ended, call.answer_headers, std::move(call.answer), call.answer_bytes);
  return events;
}

}  // namespace saccade::server
