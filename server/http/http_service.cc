#include "server/http/http_service.h"

#include <utility>

#include "server/http/http_call.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<HttpService>> HttpService::Create(Options options,
                                                                 std::vector<HttpRoute> routes) {
  auto table = Routes::Create(std::move(routes));
  if (!table.ok()) return table.status();
  auto core = std::make_shared<HttpServiceCore>(HttpServiceCore{std::move(options), *std::move(table)});
  return std::unique_ptr<HttpService>(new HttpService(std::move(core)));
}

std::unique_ptr<ExchangeReceiver> HttpService::Begin(Exchange* exchange) {
  auto call = std::make_unique<HttpCall>(core_, exchange);
  call->Begin();
  return call;
}

}  // namespace saccade::server
