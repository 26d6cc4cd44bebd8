#include "server/protocols/rest/extensions.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/inference/absent_extensions.h"
#include "server/inference/log_settings.h"
#include "server/inference/model_statistics.h"
#include "server/protocols/inference/message_json.h"
#include "server/protocols/inference/model_config.h"
#include "server/protocols/inference/statistics.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/rest/members.h"
#include "server/protocols/rest/paths.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kRawHandle[] = "raw_handle";
constexpr uint64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

HttpResponse Told(std::string json) { return {200, "application/json", std::move(json)}; }

// The response to a successful command without result: an empty body, like Triton's.
HttpResponse Done() { return Told(""); }

absl::StatusOr<HttpResponse> DoneOr(const absl::Status& status) {
  if (!status.ok()) return status;
  return Done();
}

HttpResponse TellLog() {
  Json settings = Json::object();
  for (const auto& [name, value] : DescribeLog()) {
    std::visit([&settings, key = std::string(name)](const auto& held) { settings[key] = held; }, value);
  }
  return Told(settings.dump());
}

absl::StatusOr<HttpResponse> UpdateLog(const HttpRequest& request) {
  const auto members = ParseMembers(request.body);
  if (!members.ok()) return members.status();
  const LogCallScope scope(LogCallOf(request.headers));
  if (absl::Status changed = ChangeLog(Named(*members)); !changed.ok()) return changed;
  return TellLog();
}

absl::Status TakeMember(const std::string& name, const RestValue& value, SharedRegion& region) {
  if (name == "key") {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return Invalid(name, "expected a string");
    region.key = *text;
    return absl::OkStatus();
  }
  if (name != "offset" && name != "byte_size") return absl::OkStatus();
  const auto* number = std::get_if<uint64_t>(&value);
  if (number == nullptr) return Invalid(name, "expected an integer of 0 or more");
  (name == "offset" ? region.offset : region.size) = *number;
  return absl::OkStatus();
}

// The bytes of {"raw_handle": {"b64": "..."}}.
absl::StatusOr<std::string> HandleIn(absl::string_view text) {
  const auto members = ParseMembersOf(kRawHandle, text);
  if (!members.ok()) return members.status();
  for (const auto& [name, value] : *members) {
    if (name != "b64") continue;
    std::string bytes;
    const auto* encoded = std::get_if<std::string>(&value);
    if (encoded == nullptr || !absl::Base64Unescape(*encoded, &bytes)) break;
    return bytes;
  }
  return Invalid(kRawHandle, "expected {\"b64\": \"...\"}, the handle in base64");
}

absl::StatusOr<SharedRegion> CudaRegionIn(const HttpRequest& request) {
  const auto members = ParseMembers(request.body, kRawHandle);
  if (!members.ok()) return members.status();
  SharedRegion region;
  region.name = ValueIn(request, "region");
  for (const auto& [name, value] : *members) {
    if (name != "device_id" && name != "byte_size") continue;
    const auto* number = std::get_if<uint64_t>(&value);
    if (number == nullptr || *number > kMaxInt64)
      return Invalid(name, "expected an integer of 0 or more, below 2^63");
    if (name == "byte_size") {
      region.size = *number;
    } else {
      region.gpu = static_cast<int64_t>(*number);
    }
  }
  if (!region.gpu) return Invalid("device_id", "is missing; expected the number of a GPU");
  auto handle = HandleIn(request.body);
  if (!handle.ok()) return handle.status();
  region.key = *std::move(handle);
  return region;
}

Json Described(const SharedRegion& region) {
  if (region.gpu) return {{"name", region.name}, {"device_id", *region.gpu}, {"byte_size", region.size}};
  return {{"name", region.name}, {"key", region.key}, {"offset", region.offset}, {"byte_size", region.size}};
}

}  // namespace

RestExtensions::Answer RestExtensions::Config(const HttpRequest& request) const {
  if (absl::Status named = CheckModelIn(request, "model_name"); !named.ok()) return named;
  const auto config =
      ConfigOf(*deps_.catalog, *deps_.inference, ValueIn(request, "model"), ValueIn(request, "version"));
  if (!config.ok()) return config.status();
  return Told(ToJson(*config));
}

RestExtensions::Answer RestExtensions::Statistics(const HttpRequest& request) const {
  if (absl::Status named = CheckModelIn(request, "model_name"); !named.ok()) return named;
  const auto statistics =
      StatisticsOf(*deps_.catalog, ValueIn(request, "model"), ValueIn(request, "version"));
  if (!statistics.ok()) return deps_.inference->codes().OfStatistics(statistics.status());
  inference::ModelStatisticsResponse message;
  ToMessage(*statistics, &message);
  return Told(ToJson(message));
}

RestExtensions::Answer RestExtensions::RegionStatus(const HttpRequest& request, RegionKind kind) const {
  const auto regions = deps_.shared_memory->Status(ValueIn(request, "region"), request.client, kind);
  if (!regions.ok()) return regions.status();
  Json list = Json::array();
  for (const SharedRegion& region : *regions) list.push_back(Described(region));
  return Told(list.dump(-1, ' ', false, Json::error_handler_t::replace));
}

RestExtensions::Answer RestExtensions::Unregister(const HttpRequest& request, RegionKind kind) const {
  deps_.shared_memory->Unregister(ValueIn(request, "region"), request.client, kind);
  return Done();
}

RestExtensions::Answer RestExtensions::RegisterCuda(const HttpRequest& request) const {
  if (absl::Status can = deps_.shared_memory->CanRegister(RegionKind::kCuda); !can.ok()) return can;
  const auto region = CudaRegionIn(request);
  if (!region.ok()) return region.status();
  return DoneOr(deps_.inference->codes().OfRegistrationOverHttp(
      deps_.shared_memory->Register(*region, request.client)));
}

RestExtensions::Answer RestExtensions::Register(const HttpRequest& request) const {
  const auto members = ParseMembers(request.body);
  if (!members.ok()) return members.status();
  SharedRegion region;
  region.name = ValueIn(request, "region");
  for (const auto& [name, value] : *members) {
    if (absl::Status taken = TakeMember(name, value, region); !taken.ok()) return taken;
  }
  return DoneOr(
      deps_.inference->codes().OfRegistrationOverHttp(deps_.shared_memory->Register(region, request.client)));
}

std::vector<HttpRoute> RestExtensions::ModelRoutes() const {
  const auto statistics =
      Answering(deps_.retry_jitter, [this](const HttpRequest& request) { return Statistics(request); });
  std::vector<HttpRoute> routes = ForVersions("GET", "/stats", statistics);
  routes.push_back({"GET", "/v2/models/stats", statistics});
  const auto config =
      Answering(deps_.retry_jitter, [this](const HttpRequest& request) { return Config(request); });
  for (HttpRoute& route : ForVersions("GET", "/config", config)) routes.push_back(std::move(route));
  return routes;
}

std::vector<HttpRoute> RestExtensions::LogAndTraceRoutes() const {
  const auto traces =
      Answering(deps_.retry_jitter, [](const HttpRequest&) -> Answer { return TraceExtensionUnsupported(); });
  std::vector<HttpRoute> routes = {
      {"GET", "/v2/logging", Responding([](const HttpRequest&) { return TellLog(); })},
      {"POST", "/v2/logging", Answering(deps_.retry_jitter, UpdateLog)}};
  for (const char* method : {"GET", "POST"}) {
    for (const char* path : {"/v2/trace/setting", "/v2/models/{model}/trace/setting"}) {
      routes.push_back({method, path, traces});
    }
  }
  return routes;
}

std::vector<HttpRoute> RestExtensions::SharedMemoryRoutes() const {
  std::vector<HttpRoute> routes;
  for (const RegionKind kind : {RegionKind::kSystem, RegionKind::kCuda}) {
    const bool cuda = kind == RegionKind::kCuda;
    const std::string all = cuda ? "/v2/cudasharedmemory" : "/v2/systemsharedmemory";
    const std::string one = all + "/region/{region}";
    const auto status = Answering(
        deps_.retry_jitter, [this, kind](const HttpRequest& request) { return RegionStatus(request, kind); });
    const auto add = Answering(deps_.retry_jitter, [this, cuda](const HttpRequest& request) {
      return cuda ? RegisterCuda(request) : Register(request);
    });
    const auto remove = Answering(
        deps_.retry_jitter, [this, kind](const HttpRequest& request) { return Unregister(request, kind); });
    routes.push_back({"GET", all + "/status", status});
    routes.push_back({"GET", one + "/status", status});
    routes.push_back({"POST", one + "/register", add});
    routes.push_back({"POST", all + "/unregister", remove});
    routes.push_back({"POST", one + "/unregister", remove});
  }
  return routes;
}

std::vector<HttpRoute> RestExtensions::Routes() const {
  std::vector<HttpRoute> all;
  for (const auto& routes : {ModelRoutes(), LogAndTraceRoutes(), SharedMemoryRoutes()}) {
    all.insert(all.end(), routes.begin(), routes.end());
  }
  // Statistics and configurations of many models are long; regions are opened and mapped.
  for (HttpRoute& route : all) route.may_block = true;
  return all;
}

}  // namespace saccade::server
