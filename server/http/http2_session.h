// HTTP/2 on nghttp2.
#pragma once

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/net/session.h"

namespace saccade::server {

// Beyond what nghttp2 checks, bounds how many streams are open (also before the client has acknowledged our
// SETTINGS), the size and time of heads, and how often frames come that cost us work and the client nothing.
// A client that exceeds the latter is disconnected with ENHANCE_YOUR_CALM. The arguments must outlive the
// session; `refusals` may be null.
std::unique_ptr<Session> MakeHttp2Session(Transport* transport, ExchangeHandler* handler,
                                          const HttpLimits* limits, RefusalCounter* refusals);

}  // namespace saccade::server
