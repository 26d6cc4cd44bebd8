#include "server/protocols/rest_repository.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/inference/repository_orders.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/rest_members.h"
#include "server/protocols/rest_paths.h"

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

// Blocks until what `begin` has started is done.
absl::StatusOr<HttpResponse> Await(HttpClient& client, absl::FunctionRef<void(Catalog::Done)> begin) {
  absl::Status outcome = absl::UnknownError("not done yet");
  begin([&outcome, &client](absl::Status status) {
    outcome = std::move(status);
    // Done() must be last: afterwards this frame may be gone.
    client.Done();
  });
  client.AwaitDone([] {});
  if (!outcome.ok()) return outcome;
  return HttpResponse();
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

absl::StatusOr<HttpResponse> RestRepository::Load(const HttpRequest& request) const {
  const auto parameters = ParseParameters(request.body);
  if (!parameters.ok()) return parameters.status();
  auto config = LoadConfigOf(Named(*parameters));
  if (!config.ok()) return config.status();
  const LogCallScope scope(LogCallOf(request));
  return Await(*request.client, [&](Catalog::Done done) {
    catalog_->Load(ValueIn(request, "model"), *std::move(config), std::move(done));
  });
}

absl::StatusOr<HttpResponse> RestRepository::Unload(const HttpRequest& request) const {
  const auto parameters = ParseParameters(request.body);
  if (!parameters.ok()) return parameters.status();
  const auto with_dependents = UnloadsDependents(Named(*parameters));
  if (!with_dependents.ok()) return with_dependents.status();
  const LogCallScope scope(LogCallOf(request));
  return Await(*request.client, [&](Catalog::Done done) {
    catalog_->Unload(ValueIn(request, "model"), *with_dependents, std::move(done));
  });
}

std::vector<HttpRoute> RestRepository::Routes() const {
  const auto answering = [this](auto handle) {
    return Answering(retry_jitter_,
                     [this, handle](const HttpRequest& request) { return (this->*handle)(request); });
  };
  return {{"POST", "/v2/repository/index", answering(&RestRepository::Index)},
          {"POST", "/v2/repository/models/{model}/load", answering(&RestRepository::Load)},
          {"POST", "/v2/repository/models/{model}/unload", answering(&RestRepository::Unload)}};
}

}  // namespace saccade::server
