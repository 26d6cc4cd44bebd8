#include "server/protocols/rest/model_head.h"

#include "absl/status/status.h"
#include "server/core/call_head.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/rest/paths.h"

namespace saccade::server {
namespace {

// Requests that load their model on demand find it known, but not ready.
absl::Status CheckKnown(const HttpRequest& request, absl::string_view field, const Pipeline& pipeline,
                        const Catalog& catalog) {
  if (absl::Status named = CheckModelIn(request, field); !named.ok()) return named;
  CallHead head;
  head.model = ValueIn(request, "model");
  head.client = request.client;
  if (absl::Status allowed = pipeline.CheckModel(head); !allowed.ok()) return allowed;
  absl::Status found = catalog.FindReady(head.model, head.version).status();
  return absl::IsNotFound(found) ? found : absl::OkStatus();
}

}  // namespace

std::optional<HttpResponse> ModelHeadCheck::Refuse(const HttpRequest& request, const char* route,
                                                   absl::string_view field) const {
  const absl::Status status = CheckKnown(request, field, *pipeline, *catalog);
  if (status.ok()) return std::nullopt;
  // Not captured, because there is no body.
  const CallScope scope({.watch = pipeline->deps().watch}, request, route);
  pipeline->CountMalformed("http", status.code());
  HttpResponse response = ToHttp(status, retry_jitter);
  scope.End(status, response, ModelIn(request));
  return response;
}

}  // namespace saccade::server
