// What the handlers of HTTP's paths have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"
#include "server/inference/inference.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// The version that the path names of its model, or 0 if it names none. ModelTable::VersionOf's errors.
absl::StatusOr<int64_t> VersionIn(const HttpRequest& request, const Inference& inference);

// What stands in the path for {name}; empty if the route has none.
std::string ValueIn(const HttpRequest& request, const char* name);

// Answers with what `handle` gives, or with its error. `jitter` must outlive it.
HttpHandler Answering(RetryJitter* jitter,
                      std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)> handle);

// Routes for a model's latest version and for one that the path names: `tail` stands behind them.
std::vector<HttpRoute> ForVersions(const std::string& method, const std::string& tail,
                                   const HttpHandler& handler);

}  // namespace saccade::server
