#include "server/protocols/rest/repository.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/inference/repository_orders.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/rest/members.h"
#include "server/protocols/rest/paths.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

// Reads the body: {"ready": true} asks for ready models only.
absl::StatusOr<bool> WantsReadyAlone(const HttpRequest& request) {
  const auto members = ParseMembers(request.body);
  if (!members.ok()) return members.status();
  bool ready_alone = false;
  for (const auto& [name, value] : *members) {
    if (name != "ready") continue;
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return Invalid(name, "expected true or false");
    ready_alone = *flag;
  }
  return ready_alone;
}

}  // namespace

absl::StatusOr<HttpResponse> RestRepository::Index(const HttpRequest& request) const {
  const auto ready_alone = WantsReadyAlone(request);
  if (!ready_alone.ok()) return ready_alone.status();
  Json index = Json::array();
  for (const IndexEntry& entry : IndexOf(*catalog_, *ready_alone)) {
    Json line = {{"name", entry.name}};
    if (entry.version != 0) line["version"] = absl::StrCat(entry.version);
    line["state"] = std::string(NameOf(entry.state));
    line["reason"] = entry.reason;
    index.push_back(std::move(line));
  }
  // Replaces invalid UTF-8 in folder names.
  return HttpResponse{200, "application/json", index.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

void RestRepository::Reply(const absl::Status& status, const HttpReply& reply) const {
  reply(status.ok() ? HttpResponse() : ToHttp(status, retry_jitter_));
}

void RestRepository::Load(const HttpRequest& request, HttpReply reply) const {
  const auto parameters = ParseParameters(request.body);
  if (!parameters.ok()) return Reply(parameters.status(), reply);
  auto config = LoadConfigOf(Named(*parameters));
  if (!config.ok()) return Reply(config.status(), reply);
  const LogCallScope scope(LogCallOf(request.headers));
  catalog_->Load(ValueIn(request, "model"), *std::move(config),
                 [this, reply = std::move(reply)](const absl::Status& status) {
                   Reply(inference_->codes().OfLoad(status), reply);
                 });
}

void RestRepository::Unload(const HttpRequest& request, HttpReply reply) const {
  const auto parameters = ParseParameters(request.body);
  if (!parameters.ok()) return Reply(parameters.status(), reply);
  const auto with_dependents = UnloadsDependents(Named(*parameters));
  if (!with_dependents.ok()) return Reply(with_dependents.status(), reply);
  const LogCallScope scope(LogCallOf(request.headers));
  catalog_->Unload(ValueIn(request, "model"), *with_dependents,
                   [this, reply = std::move(reply)](const absl::Status& status) {
                     Reply(inference_->codes().OfUnload(status), reply);
                   });
}

std::vector<HttpRoute> RestRepository::Routes() const {
  const auto control = [this](auto handle) -> HttpHandler {
    return [this, handle](const std::shared_ptr<const HttpRequest>& request, HttpReply reply) {
      (this->*handle)(*request, std::move(reply));
    };
  };
  const auto index = Answering(retry_jitter_, [this](const HttpRequest& request) { return Index(request); });
  // A configuration in a load may be long.
  return {{"POST", "/v2/repository/index", index, /*may_block=*/true},
          {"POST", "/v2/repository/models/{model}/load", control(&RestRepository::Load), /*may_block=*/true},
          {"POST", "/v2/repository/models/{model}/unload", control(&RestRepository::Unload),
           /*may_block=*/true}};
}

}  // namespace saccade::server
