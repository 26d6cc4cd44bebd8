// Flags of the network front: threads, connections, and what a connection may do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/http/http_limits.h"

namespace CLI {
class App;
}

namespace saccade::server {

struct FrontFlags {
  // Threads that serve connections; 0 chooses by the number of cores, see NetworkThreads().
  int network_threads = 0;
  // Open connections to the gRPC and HTTP ports together; 0 chooses by the limit of open files, see
  // MaxConnections().
  int64_t max_connections = 0;
  int64_t max_connections_per_address = 4096;
  // TLS handshakes of one address.
  int64_t max_handshakes_per_second = 1000;
  // Open watches that are not charged to the ledger: --max-health-watches and
  // --max-health-watches-per-client.
  int64_t max_health_watches = 4096;
  int64_t max_health_watches_per_client = 512;
  // Host names under which the server is reached, as --allowed-hosts names them; "*" stands for all. Empty if
  // the flag was not given, see AllowedHosts().
  std::vector<std::string> allowed_hosts;
  // Its min_bytes_per_second holds for messages, bodies and answers alike.
  HttpLimits limits = {.idle_spread = 0.1};
};

// `flags` must outlive parsing.
void AddFrontFlags(CLI::App& app, FrontFlags* flags);

// The number of threads that the flags ask for on a machine with so many cores. By default a quarter of the
// cores, at least 2 and at most 4: the rest is for forward passes. Never more than the cores.
int NetworkThreads(const FrontFlags& flags, int cores);

// The number of connections that the flags allow for a process that may open so many files. By default at
// most 16,384, and what leaves descriptors for models and for the metrics port.
size_t MaxConnections(const FrontFlags& flags, uint64_t max_files);

// OriginPolicy::allowed_hosts of ports that listen on `addresses`. Without the flag, none if all of the
// addresses are loopback ones, so that only loopback names and numeric addresses are served; else all.
std::vector<std::string> AllowedHosts(const FrontFlags& flags, const std::vector<std::string>& addresses);

}  // namespace saccade::server
