// One connection that speaks HTTP/2 or HTTP/1.1.
#pragma once

#include <memory>

#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/net/session.h"

namespace saccade::server {

// The version is the one that TLS agreed on by ALPN. Without that, a connection that begins with HTTP/2's
// preface is HTTP/2, any other HTTP/1.1. All pointers must outlive the session; `refusals` may be null.
std::unique_ptr<Session> MakeHttpSession(Transport* transport, ExchangeHandler* handler,
                                         const HttpLimits* limits, RefusalCounter* refusals);

}  // namespace saccade::server
