// Captured calls as CloudEvents over HTTP, as KServe's logger sends them: one event for the request and one
// for the answer, in binary mode, with the attributes in headers and the body as it was.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/capture/capture_settings.h"
#include "server/capture/captured_call.h"

namespace saccade::server {

struct CloudEvent {
  // Names are lower case; values are encoded as CloudEvents' HTTP binding says.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// The attribute's value with the characters that headers do not take, and those that CloudEvents reserves, as
// %XX of UTF-8.
std::string EncodeAttribute(absl::string_view value);

// The request's event, and the answer's if the call succeeded; both have the id `id`. Moves the bodies out of
// the call.
std::vector<CloudEvent> ToCloudEvents(CapturedCall call, const std::string& id,
                                      const CaptureOptions& options);

}  // namespace saccade::server
