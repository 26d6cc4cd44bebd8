// Routes with request and response bodies in memory, over exchanges.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/byte_ledger.h"
#include "server/http/caller.h"
#include "server/http/exchange.h"
#include "server/http/head_memory.h"
#include "server/http/http_message.h"
#include "server/http/origin_policy.h"
#include "server/net/work_pool.h"

namespace saccade::server {

// Called before a request's body is read, with the route's method and path and the request's headers. Returns
// the response for a client that may not make the request.
using HttpGuard = std::function<std::optional<HttpResponse>(absl::string_view method, absl::string_view route,
                                                            const HttpHeaders& headers)>;

// The options and routes (http_call.h).
struct HttpServiceCore;

class HttpService final : public ExchangeHandler {
 public:
  struct Options {
    // A body, once decompressed, has at most so many bytes.
    size_t max_body_bytes = size_t{64} << 20;
    // A compressed body may become so many times as large, and in any case have max_decompressed_bytes, as a
    // message of gRPC may.
    size_t max_compression_ratio = 64;
    size_t max_decompressed_bytes = size_t{16} << 20;
    // Requests of whose body more bytes are parsed (HttpRoute::bytes_to_parse) are handled on a pool: parsing
    // JSON takes up to 0.3 us a byte (values that are empty), and one connection may have hundreds of
    // requests. Requests whose body is compressed are decompressed and handled there, too.
    size_t max_bytes_on_loop = 256;
    // Requests of whose body more bytes are parsed are handled on `pool`, and larger bodies are decompressed
    // there. Larger responses are compressed there.
    size_t max_short_bytes = size_t{256} << 10;
    // Larger responses that are made on the loop are compressed on a pool: that takes up to about 15 us a
    // KiB.
    size_t max_encoded_on_loop = size_t{4} << 10;
    // A body must arrive at this rate, measured after the grace; else it is answered 408.
    int64_t min_bytes_per_second = 256 << 10;
    absl::Duration body_grace = absl::Seconds(10);
    // Null: every request is accepted, and its client is named by its address (CallerAt()).
    ArrivalCheck check_arrival;
    // Null: every client may make every request.
    HttpGuard guard;
    // Which hosts and origins may ask (browsers).
    OriginPolicy origins;
    // Bodies are charged here before they are read. Null: not charged.
    ByteLedger* ledger = nullptr;
    // Charges heads as long as their requests are open. Null: not charged.
    ChargeRequest charge_request;
    // For routes that may block and for large bodies and responses. Must outlive the service and its
    // exchanges. REQUIRES: not null.
    WorkPool* pool = nullptr;
    // For the other bodies and responses, which take little time and must not wait for those of `pool`. Must
    // outlive the service and its exchanges. Null: `pool` does them too.
    WorkPool* short_pool = nullptr;
    // May be null.
    RefusalCounter* refusals = nullptr;
    // Turns an error of `check_arrival` or of the ledger into a response (server/protocols/rest/error.h).
    std::function<HttpResponse(const absl::Status&)> to_http;
  };

  // INVALID_ARGUMENT for a route that cannot be served, or two that are equal.
  static absl::StatusOr<std::unique_ptr<HttpService>> Create(Options options, std::vector<HttpRoute> routes);

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override;

 private:
  explicit HttpService(std::shared_ptr<const HttpServiceCore> core) : core_(std::move(core)) {}

  // Shared with requests that are still handled on the work pool when the service is destroyed.
  const std::shared_ptr<const HttpServiceCore> core_;
};

}  // namespace saccade::server
