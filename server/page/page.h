// The page at /: pictures in, answers drawn over them, and what the daemon does meanwhile.
#pragma once

#include <vector>

#include "server/http/http_server.h"

namespace saccade::server {

// Its files, which are part of the binary. It asks for nothing but them and /v1 of this daemon, and tells the
// browser to hold it to that.
std::vector<HttpRoute> PageRoutes();

}  // namespace saccade::server
