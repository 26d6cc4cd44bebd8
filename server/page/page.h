// The web page at /: takes pictures, draws the answers over them, and shows the daemon's load.
#pragma once

#include <vector>

#include "server/http/http_message.h"

namespace saccade::server {

// Routes of the page's files, which are part of the binary. The page requests only them and this daemon's
// /v1, and has the browser enforce that.
std::vector<HttpRoute> PageRoutes();

}  // namespace saccade::server
