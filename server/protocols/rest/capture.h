// Which calls are captured, over HTTP: GET and POST /v1/capture.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/capture/capture.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// `now` with what the JSON object `text` changes: enabled, rate, and models with a rate for each, which
// replace all of them. INVALID_ARGUMENT names an unknown member or a value of another kind.
absl::StatusOr<CaptureChoice> ChangedChoice(CaptureChoice now, absl::string_view text);

// `capture` is null if calls are not captured, which the routes then say with 501. Both must outlive the
// routes' server.
std::vector<HttpRoute> CaptureRoutes(Capture* capture, RetryJitter* retry_jitter);

}  // namespace saccade::server
