// Where traces go and which calls they tell of, as OpenTelemetry's variables of the environment say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/tracing/sampler.h"

namespace saccade::server {

struct TraceSettings {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // A whole URL, http or https.
  std::string endpoint;
  Pairs headers;
  // Of one attempt.
  absl::Duration timeout = absl::Seconds(10);
  // Files in PEM: whom to trust in place of the system's, and who to be. Empty for none.
  std::string certificate;
  std::string client_key;
  std::string client_certificate;
  // Of the resource, without service.name.
  Pairs resource;
  std::string service_name = "saccaded";
  Sampler sampler;
  int64_t most_queued = 2048;
  int64_t most_in_batch = 512;
  absl::Duration delay = absl::Seconds(5);
  absl::Duration most_trying = absl::Seconds(30);
};

// The value of a variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Nothing if there are to be no traces: no endpoint is set, or they are switched off; then nothing else is
// looked at. INVALID_ARGUMENT, fit to be printed, for a value that is not understood; one that is empty
// counts as not set.
absl::StatusOr<std::optional<TraceSettings>> ReadTraceSettings(const Environment& environment);

}  // namespace saccade::server
