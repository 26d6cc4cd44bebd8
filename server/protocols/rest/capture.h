// Which calls are captured, over HTTP: GET and POST /v1/capture.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/capture/capture.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// What a request changes; what is not set stays. `models` replaces all of them.
struct CaptureChange {
  std::optional<bool> enabled = std::nullopt;
  std::optional<double> rate = std::nullopt;
  std::optional<decltype(CaptureChoice::models)> models = std::nullopt;
};

// The change that the JSON object `text` asks for: enabled, rate, and models with a rate for each.
// INVALID_ARGUMENT names an unknown member, a value of another kind or out of its bounds, or a model's name
// longer than kMaxModelName.
absl::StatusOr<CaptureChange> CaptureChangeOf(absl::string_view text);

// `now` after the change.
CaptureChoice WithChange(CaptureChoice now, CaptureChange change);

// `capture` is null if calls are not captured, which the routes then say with 501. Both must outlive the
// routes' server.
std::vector<HttpRoute> CaptureRoutes(Capture* capture, RetryJitter* retry_jitter);

}  // namespace saccade::server
