// Hands the requests of a port to gRPC or to the HTTP routes, and ends incomplete ones when the daemon
// drains.
#pragma once

#include <memory>
#include <vector>

#include "server/http/exchange.h"
#include "server/net/loop.h"

namespace saccade::server {

// Begin() is called on the loops' threads, the other functions on any thread. This object must outlive the
// exchanges.
class RequestDispatcher final : public ExchangeHandler {
 public:
  // All must outlive this object. `loops` are those of the ports that it serves.
  RequestDispatcher(ExchangeHandler* grpc, ExchangeHandler* http, const std::vector<Loop*>& loops);
  ~RequestDispatcher() override;

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override;

  // Ends the requests whose clients have not sent them completely, and for which no response waits to be
  // sent. Those of which something was processed, such as streams with answers, end with a status of their
  // own, after the answers that are due. The others are reset: HTTP/2 clients are told that the request was
  // refused, so that it may be repeated elsewhere; gRPC reports that as UNAVAILABLE. Does not block.
  void EndUnfinished();

 private:
  class Request;
  struct OpenRequests;

  OpenRequests* OnLoop(const Loop& loop) const;

  ExchangeHandler* const grpc_;
  ExchangeHandler* const http_;
  // One for each loop, used on its thread only. Shared with tasks that were posted there.
  std::vector<std::shared_ptr<OpenRequests>> open_;
};

}  // namespace saccade::server
