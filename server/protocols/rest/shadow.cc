#include "server/protocols/rest/shadow.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/protocols/rest/paths.h"
#include "server/shadow/shadow_json.h"

namespace saccade::server {

HttpRoute ShadowRoute(const Catalog* catalog, RetryJitter* retry_jitter) {
  const auto report = [catalog](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
    const auto model = catalog->FindReady(ValueIn(request, "model"), 0);
    if (!model.ok()) return model.status();
    const std::shared_ptr<Shadow> shadow = (*model)->shadow();
    if (shadow == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("model '", (*model)->name(),
                       "' has no shadow version; set the parameter shadow in its config.pbtxt, e.g. to "
                       "version=4,share=0.1"));
    }
    HttpResponse response;
    response.body = ToJson(shadow->Report(), (*model)->name(), (*model)->version());
    response.headers.emplace_back("Cache-Control", "no-cache");
    return response;
  };
  return {.method = "GET",
          .path = "/v1/models/{model}/shadow",
          .handler = Answering(retry_jitter, report),
          .may_block = true};
}

}  // namespace saccade::server
