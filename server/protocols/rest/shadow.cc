#include "server/protocols/rest/shadow.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/protocols/rest/paths.h"
#include "server/shadow/shadow_json.h"

namespace saccade::server {
namespace {

// A model as requests without a version find it, and the version of it that is compared with its shadow.
struct Trial {
  std::shared_ptr<ServedModel> model;
  // Null if no version is. Of several, the one that would be replaced, or else the one that answers.
  std::shared_ptr<ServedModel> compared = nullptr;
};

absl::StatusOr<Trial> FindTrial(const Catalog& catalog, const std::string& name) {
  auto model = catalog.FindReady(name, 0);
  if (!model.ok()) return model.status();
  Trial trial = {.model = *model};
  if ((*model)->shadow() != nullptr) trial.compared = *std::move(model);
  for (const int64_t version : catalog.ServedVersions(name)) {
    auto other = catalog.FindReady(name, version);
    if (other.ok() && (*other)->shadow() != nullptr && (*other)->shadow()->rule().promote)
      trial.compared = *std::move(other);
  }
  return trial;
}

absl::Status NoShadow(const std::string& name) {
  return absl::NotFoundError(
      absl::StrCat("model '", name,
                   "' has no shadow version; set the parameter shadow in its config.pbtxt, e.g. to "
                   "version=4,share=0.1"));
}

absl::StatusOr<HttpResponse> Report(const Catalog& catalog, const HttpRequest& request) {
  const std::string name = ValueIn(request, "model");
  const auto trial = FindTrial(catalog, name);
  if (!trial.ok()) return trial.status();
  HttpResponse response;
  response.headers.emplace_back("Cache-Control", "no-cache");
  if (trial->compared != nullptr) {
    response.body = ToJson(trial->compared->shadow()->Report(), name, trial->compared->version());
  } else if (const auto& promotion = trial->model->settings().promotion) {
    response.body = ToJson(*promotion, name);
  } else {
    return NoShadow(name);
  }
  return response;
}

absl::StatusOr<HttpResponse> PictureOf(const Catalog& catalog, const HttpRequest& request) {
  const std::string name = ValueIn(request, "model");
  const auto trial = FindTrial(catalog, name);
  if (!trial.ok()) return trial.status();
  if (trial->compared == nullptr) return NoShadow(name);
  const ShadowReport report = trial->compared->shadow()->Report();
  int64_t number = 0;
  const bool is_number = absl::SimpleAtoi(ValueIn(request, "number"), &number);
  const auto found = std::find_if(
      report.differing.begin(), report.differing.end(),
      [&](const Disagreement& one) { return is_number && one.number == number && one.picture != nullptr; });
  if (found == report.differing.end()) {
    return absl::NotFoundError(
        absl::StrCat("no picture of this number is kept; /v1/models/", name,
                     "/shadow lists those that are, as the entries of 'differing' with picture_bytes"));
  }
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.attached.emplace_back(std::string_view(*found->picture), found->picture);
  response.compressible = false;
  // Opened by itself in a browser it can do nothing.
  response.headers = {{"Content-Security-Policy", "default-src 'none'; sandbox"},
                      {"Cache-Control", "no-cache"}};
  return response;
}

}  // namespace

std::vector<HttpRoute> ShadowRoutes(const Catalog* catalog, RetryJitter* retry_jitter) {
  const auto route = [&](const char* path, auto function) {
    return HttpRoute{.method = "GET",
                     .path = path,
                     .handler = Answering(retry_jitter,
                                          [catalog, function](const HttpRequest& request) {
                                            return function(*catalog, request);
                                          }),
                     .may_block = true};
  };
  return {route("/v1/models/{model}/shadow", Report),
          route("/v1/models/{model}/shadow/pictures/{number}", PictureOf)};
}

}  // namespace saccade::server
