// Our server on a free port of 127.0.0.1, as GrpcRuntime is gRPC's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/core/byte_ledger.h"
#include "server/core/clock.h"
#include "server/grpc/call.h"
#include "server/grpc/grpc_handler.h"
#include "server/http/http_session.h"
#include "server/net/event_loop.h"
#include "server/net/port.h"

namespace saccade::server {

class TestFront {
 public:
  // `ledger` must outlive this object and everything that was sent to it.
  TestFront(std::vector<CallMethod> methods, int64_t max_message_bytes, ByteLedger* ledger) {
    GrpcHandler::Options options;
    options.max_message_bytes = max_message_bytes;
    options.ledger = ledger;
    options.clock = Clock::Real();
    handler_ = std::make_unique<GrpcHandler>(std::move(options), std::move(methods));
    loop_ = *EventLoop::Create("front");
    PortOptions port;
    port.port_flag = "--port";
    port.host = "127.0.0.1";
    port.loops = {loop_.get()};
    port.make_session = [this](Transport* transport) {
      return MakeHttpSession(transport, handler_.get(), &limits_, nullptr);
    };
    port_ = *Port::Open(std::move(port));
  }
  // Blocks until no handler is called any more.
  ~TestFront() {
    port_->Close();
    loop_.reset();
  }
  TestFront(const TestFront&) = delete;
  TestFront& operator=(const TestFront&) = delete;

  int port() const { return port_->port(); }

 private:
  const HttpLimits limits_;
  std::unique_ptr<GrpcHandler> handler_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Port> port_;
};

}  // namespace saccade::server
