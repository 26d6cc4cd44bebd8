#include "server/protocols/rest/capture.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/core/errors.h"
#include "server/core/json_text.h"
#include "server/grpc/message_size.h"
#include "server/logging/log.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/rest/media.h"
#include "server/protocols/rest/paths.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;
// A sorted map: ordered_json compares each name with all before it.
using ParsedJson = nlohmann::json;

constexpr size_t kMaxBody = size_t{1} << 20;
constexpr size_t kMaxModels = 4096;

HttpResponse Describe(const Capture& capture) {
  const CaptureOptions& options = capture.options();
  const CaptureChoice choice = capture.choice();
  Json models = Json::object();
  // By name, each would be compared with all before it.
  for (const auto& [model, rate] : choice.models) models.get_ref<Json::object_t&>().emplace_back(model, rate);
  const Json json = {{"enabled", choice.enabled},
                     {"rate", choice.rate},
                     {"models", std::move(models)},
                     {"folder", options.folder},
                     {"sink", options.sink},
                     {"pixels", std::string(NameOf(options.pixels))},
                     {"bytes", capture.folder_bytes()},
                     {"max_bytes", options.max_bytes},
                     {"max_age_seconds", absl::ToInt64Seconds(options.max_age)}};
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

absl::Status TakeRates(const ParsedJson& value, CaptureChange& change) {
  if (!value.is_object()) return Invalid("models", "expected an object with a rate for each model");
  if (value.size() > kMaxModels) {
    return Invalid("models",
                   absl::StrCat("names ", value.size(), " models; at most ", kMaxModels, " may be named"));
  }
  auto& rates = change.models.emplace();
  for (const auto& [model, rate] : value.items()) {
    if (model.size() > kMaxModelName) {
      return Invalid("models", absl::StrCat("has a name of ", model.size(), " bytes; at most ", kMaxModelName,
                                            " are accepted"));
    }
    if (!rate.is_number()) return Invalid(Shown(model), "expected a number from 0 to 1");
    rates[model] = rate.get<double>();
  }
  return absl::OkStatus();
}

absl::Status TakeMember(const std::string& name, const ParsedJson& value, CaptureChange& change) {
  if (name == "models") return TakeRates(value, change);
  if (name == "enabled") {
    if (!value.is_boolean()) return Invalid(name, "expected true or false");
    change.enabled = value.get<bool>();
    return absl::OkStatus();
  }
  if (name == "rate") {
    if (!value.is_number()) return Invalid(name, "expected a number from 0 to 1");
    change.rate = value.get<double>();
    return absl::OkStatus();
  }
  return Invalid(Shown(name), "is unknown; expected enabled, rate or models");
}

absl::StatusOr<HttpResponse> Update(Capture& capture, const HttpRequest& request) {
  auto change = CaptureChangeOf(request.body);
  if (!change.ok()) return change.status();
  bool enabled = false;
  double rate = 0;
  {
    // What a request omits stays as another one has just set it.
    static absl::Mutex changing(absl::kConstInit);
    const absl::MutexLock lock(&changing);
    CaptureChoice changed = WithChange(capture.choice(), *std::move(change));
    enabled = changed.enabled;
    rate = changed.rate;
    if (absl::Status taken = capture.Change(std::move(changed)); !taken.ok()) return taken;
  }
  const LogCallScope scope(LogCallOf(request.headers));
  Log(LogLevel::kInfo, "the capture of calls was changed",
      {{"enabled", enabled}, {"rate", absl::StrCat(rate)}});
  return Describe(capture);
}

}  // namespace

absl::StatusOr<CaptureChange> CaptureChangeOf(absl::string_view text) {
  if (text.size() > kMaxBody) return Invalid("the body", "is longer than 1 MiB; name fewer models");
  if (absl::Status few = CheckJsonValues(MaxJsonValuesIn(text)); !few.ok())
    return Invalid("the body", few.message());
  const auto json = ParsedJson::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Invalid("the body", R"(expected a JSON object such as {"enabled": true})");
  CaptureChange change;
  for (const auto& [name, value] : json.items()) {
    if (absl::Status taken = TakeMember(name, value, change); !taken.ok()) return taken;
  }
  if (absl::Status checked = CheckChoice(WithChange({}, change)); !checked.ok()) return checked;
  return change;
}

CaptureChoice WithChange(CaptureChoice now, CaptureChange change) {
  if (change.enabled) now.enabled = *change.enabled;
  if (change.rate) now.rate = *change.rate;
  if (change.models) now.models = *std::move(change.models);
  return now;
}

std::vector<HttpRoute> CaptureRoutes(Capture* capture, RetryJitter* retry_jitter) {
  const auto answering = [capture, retry_jitter](auto handle) {
    return Answering(
        retry_jitter, [capture, handle](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
          if (capture == nullptr)
            return absl::UnimplementedError(
                "calls are not captured; start the daemon with --capture DIR or --capture-sink URL");
          return handle(*capture, request);
        });
  };
  const auto describe = [](Capture& of, const HttpRequest&) -> absl::StatusOr<HttpResponse> {
    return Describe(of);
  };
  // The choice may name thousands of models.
  return {{"GET", "/v1/capture", answering(describe), /*may_block=*/true},
          TakingJsonOrBinary({"POST", "/v1/capture", answering(Update), /*may_block=*/true})};
}

}  // namespace saccade::server
