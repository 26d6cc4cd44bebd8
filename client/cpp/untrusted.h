// Finds out why a daemon's certificate is not trusted, which gRPC does not report.
#pragma once

#include <string>

namespace saccade::client {

// Connects to HOST:PORT and verifies the certificate there; `authorities` are PEM, or empty for this
// machine's. Blocks for a few seconds at most. Empty if the certificate is valid or nothing could be found
// out.
std::string WhyUntrusted(const std::string& host_port, const std::string& authorities);

}  // namespace saccade::client
