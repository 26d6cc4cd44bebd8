#include "server/protocols/rest/paths.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/protocols/rest/error.h"

namespace saccade::server {

std::string ValueIn(const HttpRequest& request, const char* name) {
  const auto found = request.path_values.find(name);
  return found == request.path_values.end() ? "" : found->second;
}

absl::StatusOr<int64_t> VersionIn(const HttpRequest& request, const Inference& inference) {
  return inference.VersionOf(ValueIn(request, "model"), ValueIn(request, "version"));
}

HttpHandler Answering(RetryJitter* jitter,
                      std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)> handle) {
  return Responding([jitter, handle = std::move(handle)](const HttpRequest& request) {
    auto response = handle(request);
    return response.ok() ? *std::move(response) : ToHttp(response.status(), jitter);
  });
}

std::vector<HttpRoute> ForVersions(const std::string& method, const std::string& tail,
                                   const HttpHandler& handler, bool may_block) {
  return {{method, absl::StrCat("/v2/models/{model}", tail), handler, may_block},
          {method, absl::StrCat("/v2/models/{model}/versions/{version}", tail), handler, may_block}};
}

}  // namespace saccade::server
