#include "server/protocols/rest/drift.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/drift/drift_json.h"
#include "server/protocols/rest/paths.h"

namespace saccade::server {

HttpRoute DriftRoute(const Catalog* catalog, RetryJitter* retry_jitter) {
  const auto report = [catalog](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
    const auto model = catalog->FindReady(ValueIn(request, "model"), 0);
    if (!model.ok()) return model.status();
    const DriftWatch* const drift = (*model)->drift();
    if (drift == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("drift of model '", (*model)->name(),
                       "' is not watched; set the parameter drift_window in its config.pbtxt, e.g. to 1000"));
    }
    HttpResponse response;
    response.body = ToJson(drift->Report(), (*model)->name(), (*model)->version());
    response.headers.emplace_back("Cache-Control", "no-cache");
    return response;
  };
  return {.method = "GET",
          .path = "/v1/models/{model}/drift",
          .handler = Answering(retry_jitter, report),
          .may_block = true};
}

}  // namespace saccade::server
