// Checks that other machines cannot call the daemon without authentication.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace saccade::server {

struct Exposure {
  // Addresses on which the daemon listens, without that of the metrics port if --plain-metrics is set.
  std::vector<std::string> hosts;
  bool tls = false;
  bool requires_client_certificate = false;
  bool requires_token = false;
};

// Whether only programs on this machine can reach `host`.
bool IsLoopback(const std::string& host);

// INVALID_ARGUMENT if other machines could call without authentication, or would send tokens unencrypted; the
// message says what to do.
absl::Status CheckExposure(const Exposure& exposure);

}  // namespace saccade::server
