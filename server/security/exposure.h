// Whether what the daemon is told to open may be open to other machines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace saccade::server {

struct Exposure {
  // Where it listens for calls; --plain-metrics alone decides about its own port.
  std::vector<std::string> hosts;
  bool tls = false;
  bool asks_clients = false;
  bool asks_tokens = false;
};

// Whether only programs on this machine can reach it.
bool IsLoopback(const std::string& host);

// INVALID_ARGUMENT if other machines could call without showing who they are, or would send their tokens in
// the clear; the message says what to do.
absl::Status CheckExposure(const Exposure& exposure);

}  // namespace saccade::server
