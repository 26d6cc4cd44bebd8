// What is captured of an HTTP request beside its body. Nothing that says who called is: neither tokens nor
// addresses.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/capture/capture.h"
#include "server/capture/captured_call.h"
#include "server/http/http_headers.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Null if `capture` is, or is switched off.
inline Capture* CaptureIfEnabled(Capture* capture) {
  return capture != nullptr && capture->enabled() ? capture : nullptr;
}

// The headers that describe a body, with names in lower case; all others are left out.
CapturedCall::Headers CapturedHeaders(const HttpHeaders& headers);

// Path and query as sent, but without the values of parameters that are named like secrets ("token",
// "api_key").
std::string CapturedTarget(const HttpRequest& request);

}  // namespace saccade::server
