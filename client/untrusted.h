// What is wrong with a daemon's certificate, which gRPC keeps to itself.
#pragma once

#include <string>

namespace saccade::client {

// Connects to HOST:PORT and looks at the certificate there; `authorities` are PEM, or empty for this
// machine's. Gives up after a few seconds. Empty if there is nothing wrong with it, or nothing could be found
// out.
std::string WhyUntrusted(const std::string& host_port, const std::string& authorities);

}  // namespace saccade::client
