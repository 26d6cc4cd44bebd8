// The network front: event loops, ports, and what is served there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/byte_ledger.h"
#include "server/core/clock.h"
#include "server/grpc/call.h"
#include "server/grpc/health.h"
#include "server/http/exchange.h"
#include "server/http/http_limits.h"
#include "server/http/http_message.h"
#include "server/http/origin_policy.h"
#include "server/lifecycle/front/health_reserve.h"
#include "server/lifecycle/front/identify_clients.h"
#include "server/lifecycle/front/request_dispatcher.h"
#include "server/net/connection_limits.h"
#include "server/net/event_loop.h"
#include "server/net/port.h"
#include "server/net/work_pool.h"

namespace saccade::server {

class Certificates;
class FrontMetrics;
class Metrics;
class RetryJitter;
class Tokens;

// The gRPC port and the HTTP port serve the same: gRPC and gRPC-web by the content type, everything else by
// the routes, over HTTP/1.1 and HTTP/2. The metrics port has its own routes and checks of gRPC's health, and
// slots and a thread of its own, so that probes get through while the other ports are under attack.
//
// Used by one thread, unless stated otherwise.
class Front {
 public:
  struct Address {
    std::string host;
    // 0 picks a free port.
    int port = 0;
  };
  struct Options {
    Address grpc;
    Address http;
    Address metrics;
    // Serve metrics without TLS and without tokens.
    bool plain_metrics = false;
    // Event loops, and threads for work that takes long.
    int network_threads = 1;
    int work_threads = 2;
    ConnectionLimits::Options connections;
    HttpLimits limits;
    HealthReserve::Options health;
    // The policies of the gRPC and HTTP ports, and of the metrics port.
    OriginPolicy origins;
    OriginPolicy metrics_origins;
    int64_t max_message_bytes = int64_t{64} << 20;
    // See GrpcHandler::Options.
    bool always_report_load = false;
  };
  // All must outlive the front.
  struct Deps {
    // `certificates` is null without TLS, `tokens` without a token file.
    const Certificates* certificates = nullptr;
    const Tokens* tokens = nullptr;
    ByteLedger* ledger = nullptr;
    Metrics* metrics = nullptr;
    RetryJitter* retry_jitter = nullptr;
    Clock* clock = nullptr;
    // GrpcHandler::Options::load_report, for the gRPC and HTTP ports.
    std::function<std::string()> load_report = nullptr;
    // Null: clients have no rates.
    CountRequest count_request = nullptr;
  };
  struct Services {
    std::vector<CallMethod> methods;
    std::vector<HttpRoute> routes;
    std::vector<HttpRoute> metrics_routes;
  };

  // Starts the threads. RESOURCE_EXHAUSTED if the system has no threads or descriptors left.
  static absl::StatusOr<std::unique_ptr<Front>> Create(Options options, const Deps& deps);
  // Calls Stop().
  ~Front();

  // Opens the ports. The health service and reflection are added to the methods; all of them must be callable
  // until Stop() has returned. An error names the flag. Call once.
  absl::Status Open(Services services);

  int grpc_port() const { return grpc_port_->port(); }
  int http_port() const { return http_port_->port(); }
  int metrics_port() const { return metrics_port_->port(); }

  // Thread-safe.
  Health& health() { return health_; }
  // Bytes that health calls hold beside the ledger. Thread-safe.
  int64_t health_bytes() const { return health_reserve_.bytes(); }
  // For the gRPC and HTTP ports' work that blocks or takes long. Valid until Stop().
  WorkPool* pool() { return pool_.get(); }
  // For large messages of gRPC, which must not wait for files and long texts. Valid until Stop().
  WorkPool* message_pool() { return message_pool_.get(); }

  // Requests of the gRPC and HTTP ports that are not completely received and answered. Blocks until the loops
  // have counted them. Thread-safe between Open() and Stop(); not on a loop's thread.
  size_t open_requests() const;
  // How many accepted requests of these ports were ended because their clients did not read the answers in
  // time (RefusalCounter::CountCut()). A request that open_requests() counts no more is in it. Thread-safe.
  int64_t cut_requests() const;
  // Updates the gauges. Called by the metrics' scrape hook, like open_requests().
  void RefreshMetrics();

  // Ends health watches, and tells the clients of the gRPC and HTTP ports to send new requests elsewhere;
  // requests that come within `grace` are still accepted. Does not block.
  void GoAway(absl::Duration grace);
  // See RequestDispatcher.
  void EndUnfinished() { dispatcher_->EndUnfinished(); }

  // Closes the gRPC and HTTP ports and all their connections. Blocks until no handler is called any more.
  void ClosePorts();
  // Closes the metrics port too, and ends all threads. REQUIRES: nothing that was called through the front
  // will answer any more, or submit work to a pool.
  void Stop();

 private:
  class RefusalMetrics;

  Front(Options options, const Deps& deps);

  absl::Status StartThreads();
  // The metrics port's requests are not counted, and have no ledger.
  ArrivalCheck CheckArrivalsAt(const ByteLedger* ledger) const;
  ChargeRequest ChargeRequestsTo(const ByteLedger* ledger);
  RefusalCounter* RefusalsAt(bool is_metrics_port) const;
  const OriginPolicy& OriginsAt(const ByteLedger* ledger) const {
    return ledger == nullptr ? options_.metrics_origins : options_.origins;
  }
  std::unique_ptr<ExchangeHandler> MakeGrpc(std::vector<CallMethod> methods, int64_t max_message_bytes,
                                            ByteLedger* ledger, bool needs_token);
  absl::StatusOr<std::unique_ptr<ExchangeHandler>> MakeHttp(std::vector<HttpRoute> routes,
                                                            int64_t max_message_bytes, ByteLedger* ledger,
                                                            WorkPool* pool, WorkPool* short_pool,
                                                            bool needs_token);
  absl::StatusOr<std::unique_ptr<Port>> OpenPort(const std::string& flag, const Address& address,
                                                 ExchangeHandler* handler, const HttpLimits* http_limits,
                                                 ConnectionLimits* limits, bool is_plain);

  const Options options_;
  const Deps deps_;
  // The metrics port's, which are lower.
  const HttpLimits metrics_limits_;
  const std::unique_ptr<FrontMetrics> metrics_;
  const std::unique_ptr<RefusalMetrics> refusals_;
  // The metrics port's, whose requests do not count as cut.
  const std::unique_ptr<RefusalMetrics> metrics_refusals_;
  ConnectionLimits connection_limits_;
  ConnectionLimits metrics_connection_limits_;
  // Outlives the calls, which end with the loops.
  HealthReserve health_reserve_;
  Health health_;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<WorkPool> pool_;
  // HttpService::Options::short_pool of the gRPC and HTTP ports.
  std::unique_ptr<WorkPool> short_pool_;
  std::unique_ptr<WorkPool> message_pool_;
  std::unique_ptr<WorkPool> metrics_pool_;
  std::unique_ptr<ExchangeHandler> grpc_;
  std::unique_ptr<ExchangeHandler> http_;
  std::unique_ptr<RequestDispatcher> dispatcher_;
  std::unique_ptr<ExchangeHandler> metrics_grpc_;
  std::unique_ptr<ExchangeHandler> metrics_http_;
  std::unique_ptr<RequestDispatcher> metrics_dispatcher_;
  std::unique_ptr<Port> grpc_port_;
  std::unique_ptr<Port> http_port_;
  std::unique_ptr<Port> metrics_port_;
  // True once all ports are open. Requests may arrive at the first port before that.
  std::atomic<bool> are_open_ = false;
};

}  // namespace saccade::server
