// HTTP client that posts CloudEvents to a sink.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/capture/cloud_event.h"

namespace saccade::server {

// Not thread-safe. Keeps its connection. Does not follow redirects, and ignores the bodies of responses.
class EventClient {
 public:
  // INVALID_ARGUMENT if `url` is not an HTTP address. `version` is the daemon's version.
  static absl::StatusOr<std::unique_ptr<EventClient>> Create(const std::string& url,
                                                             const std::string& version);
  ~EventClient();

  // Blocks until the sink has responded, for at most 10 seconds, or `given_up` returns true. UNAVAILABLE
  // unless the response's status is 2xx.
  absl::Status Send(const CloudEvent& event, const std::function<bool()>& given_up);

 private:
  struct Handle;
  EventClient(std::string url, std::unique_ptr<Handle> handle);

  const std::string url_;
  const std::unique_ptr<Handle> handle_;
};

}  // namespace saccade::server
