// Helpers for handlers of HTTP paths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/inference/inference.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// The name of the model in the path; empty if it is longer than kMaxModelName.
std::string ModelIn(const HttpRequest& request);

// INVALID_ARGUMENT if the model's name in the path is longer than kMaxModelName. `field` is what the protocol
// calls it.
absl::Status CheckModelIn(const HttpRequest& request, absl::string_view field);

// The version of the model in the path, or 0 if the path has none. Errors of CheckModelIn and of
// ModelTable::VersionOf.
absl::StatusOr<int64_t> VersionIn(const HttpRequest& request, const Inference& inference);

// The value of {name} in the path; empty if the route has none.
std::string ValueIn(const HttpRequest& request, const char* name);

// A handler that responds with `handle`'s result or error. `jitter` must outlive it.
HttpHandler Answering(RetryJitter* jitter,
                      std::function<absl::StatusOr<HttpResponse>(const HttpRequest&)> handle);

// Routes for a model's default version and for a version in the path, each followed by `tail`.
std::vector<HttpRoute> ForVersions(const std::string& method, const std::string& tail,
                                   const HttpHandler& handler, bool may_block = false);

}  // namespace saccade::server
