// Flags of HTTP/2 connections, under Triton's names.
#pragma once

#include "server/http/http_limits.h"

namespace CLI {
class App;
}

namespace saccade::server {

// Adds the flags to `app`. They hold for all ports, whatever is spoken there. `limits` must outlive parsing;
// the defaults are its values.
void AddGrpcFlags(CLI::App& app, HttpLimits* limits);

}  // namespace saccade::server
