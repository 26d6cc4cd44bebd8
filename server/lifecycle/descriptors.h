// Handles the exhaustion of file descriptors.
#pragma once

namespace saccade::server {

// Raises the process's soft limit of descriptors to its hard limit, and keeps one descriptor in reserve.
// While none are left, connections to gRPC's port are accepted with the reserve and closed at once; otherwise
// gRPC would stop accepting connections for good after the first failure. Call once, before any port is
// opened.
void PrepareForTooManyFiles();

}  // namespace saccade::server
