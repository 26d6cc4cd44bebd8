// Settings of tracing, from OpenTelemetry's environment variables.
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

  // The full URL, http or https.
  std::string endpoint;
  Pairs headers;
  // Timeout of one attempt.
  absl::Duration timeout = absl::Seconds(10);
  // PEM files: the trusted certificates instead of the system's, and the client's key and certificate. Empty
  // if not set.
  std::string certificate;
  std::string client_key;
  std::string client_certificate;
  // Resource attributes, without service.name.
  Pairs resource;
  std::string service_name = "saccaded";
  Sampler sampler;
  int64_t max_queued = 2048;
  int64_t max_in_batch = 512;
  absl::Duration delay = absl::Seconds(5);
  absl::Duration max_trying = absl::Seconds(30);
};

// The value of a variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Reads the settings. Returns nullopt if tracing is off, because no endpoint is set or it is disabled; the
// other variables are then not checked. INVALID_ARGUMENT with a printable message for an invalid value. Empty
// values count as not set.
absl::StatusOr<std::optional<TraceSettings>> ReadTraceSettings(const Environment& environment);

}  // namespace saccade::server
