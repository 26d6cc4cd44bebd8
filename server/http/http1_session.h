// One HTTP/1.1 or HTTP/1.0 connection.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/net/session.h"

namespace saccade::server {

// One request at a time: what a client sends ahead waits until the response is written. `first_byte` is when
// the first byte came, if bytes came before the session was made; the head timeout counts from it. All
// pointers must outlive the session; `refusals` may be null.
std::unique_ptr<Session> MakeHttp1Session(Transport* transport, ExchangeHandler* handler,
                                          const HttpLimits* limits, RefusalCounter* refusals,
                                          absl::Time first_byte = absl::InfiniteFuture());

}  // namespace saccade::server
