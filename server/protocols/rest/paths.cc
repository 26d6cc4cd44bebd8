#include "server/protocols/rest/paths.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/grpc/message_size.h"
#include "server/protocols/rest/error.h"

namespace saccade::server {

std::string ValueIn(const HttpRequest& request, const char* name) {
  const auto found = request.path_values.find(name);
  return found == request.path_values.end() ? "" : found->second;
}

std::string ModelIn(const HttpRequest& request) {
  std::string model = ValueIn(request, "model");
  return model.size() > kMaxModelName ? std::string() : model;
}

absl::Status CheckModelIn(const HttpRequest& request, absl::string_view field) {
  const auto model = request.path_values.find("model");
  if (model == request.path_values.end() || model->second.size() <= kMaxModelName) return absl::OkStatus();
  return Invalid(
      field, absl::StrCat("has ", model->second.size(), " bytes; at most ", kMaxModelName, " are accepted"));
}

absl::StatusOr<int64_t> VersionIn(const HttpRequest& request, const Inference& inference) {
  if (absl::Status named = CheckModelIn(request, "model_name"); !named.ok()) return named;
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
