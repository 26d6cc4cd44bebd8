#include "server/lifecycle/front/front.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/reflection.h"
#include "server/http/http_service.h"
#include "server/http/http_session.h"
#include "server/lifecycle/front/http_guard.h"
#include "server/metrics/metrics.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/retry_jitter.h"
#include "server/security/certificates.h"
#include "server/security/scopes.h"
#include "server/security/tokens.h"

namespace saccade::server {
namespace {

// Tasks that wait for a thread of the pool. Each holds a request, whose bytes admission bounds.
constexpr size_t kMaxWaitingTasks = 1024;
// Requests with short bodies that wait, likewise. Almost every request in JSON is one.
constexpr size_t kMaxWaitingShort = 16384;
constexpr size_t kMaxWaitingScrapes = 64;
// The metrics port's requests have no bodies, and those of gRPC's health service are small.
constexpr int64_t kMaxMetricsMessage = 4 << 10;
constexpr int kMaxMetricsStreams = 16;
constexpr ConnectionLimits::Options kMetricsConnections = {
    .max_connections = 256, .max_per_address = 64, .kept_for_probes = 16};

// Positions of the ports in the metrics.
enum PortIndex : size_t { kGrpcPort, kHttpPort, kMetricsPort };
const std::vector<std::string_view> kPortNames = {"grpc", "http", "metrics"};

std::vector<std::string_view> RefusalNames() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kRefusals; ++i) {
    const absl::string_view name = NameOf(static_cast<Refusal>(i));
    names.emplace_back(name.data(), name.size());
  }
  return names;
}

HttpLimits MetricsLimits(HttpLimits limits) {
  limits.max_streams = kMaxMetricsStreams;
  return limits;
}

// Checks of health alone. Watches stay open, so a few clients could hold all slots of the metrics port by
// them, and probes would get none.
std::vector<CallMethod> MetricsMethods(std::vector<CallMethod> health) {
  std::erase_if(health,
                [](const CallMethod& method) { return HealthCallOf(method.path) == HealthCall::kWatch; });
  return health;
}

void Append(std::vector<CallMethod> more, std::vector<CallMethod>* methods) {
  std::move(more.begin(), more.end(), std::back_inserter(*methods));
}

}  // namespace

class Front::RefusalMetrics final : public RefusalCounter {
 public:
  explicit RefusalMetrics(FrontMetrics* metrics) : metrics_(metrics) {}
  void Count(Refusal refusal) override { metrics_->RecordRefusal(static_cast<size_t>(refusal)); }
  void CountCut(size_t requests) override { cut_.fetch_add(static_cast<int64_t>(requests)); }
  int64_t cut() const { return cut_.load(); }

 private:
  FrontMetrics* const metrics_;
  std::atomic<int64_t> cut_ = 0;
};

Front::Front(Options options, const Deps& deps)
    : options_(std::move(options)),
      deps_(deps),
      metrics_limits_(MetricsLimits(options_.limits)),
      metrics_(deps.metrics->ForFront(RefusalNames(), kPortNames)),
      refusals_(std::make_unique<RefusalMetrics>(metrics_.get())),
      metrics_refusals_(std::make_unique<RefusalMetrics>(metrics_.get())),
      connection_limits_(options_.connections),
      metrics_connection_limits_(kMetricsConnections),
      health_reserve_(deps.ledger, options_.health) {}

Front::~Front() { Stop(); }

absl::StatusOr<std::unique_ptr<Front>> Front::Create(Options options, const Deps& deps) {
  std::unique_ptr<Front> front(new Front(std::move(options), deps));
  if (absl::Status started = front->StartThreads(); !started.ok()) return started;
  return front;
}

absl::Status Front::StartThreads() {
  for (int i = 0; i < options_.network_threads; ++i) {
    auto loop = EventLoop::Create(absl::StrCat("network-", i));
    if (!loop.ok()) return loop.status();
    loops_.push_back(*std::move(loop));
  }
  const auto start = [](std::unique_ptr<WorkPool>& pool, int threads, size_t max_waiting) {
    auto created = WorkPool::Create(threads, max_waiting);
    if (!created.ok()) return created.status();
    pool = *std::move(created);
    return absl::OkStatus();
  };
  absl::Status started = start(pool_, options_.work_threads, kMaxWaitingTasks);
  if (started.ok()) started = start(short_pool_, options_.work_threads, kMaxWaitingShort);
  if (started.ok()) started = start(message_pool_, options_.work_threads, kMaxWaitingTasks);
  if (started.ok()) started = start(metrics_pool_, 1, kMaxWaitingScrapes);
  return started;
}

ArrivalCheck Front::CheckArrivalsAt(const ByteLedger* ledger) const {
  return IdentifyClients(deps_.tokens, ledger == nullptr ? nullptr : deps_.count_request);
}

ChargeRequest Front::ChargeRequestsTo(const ByteLedger* ledger) {
  if (ledger == nullptr) return nullptr;
  return [this](absl::string_view client, const RequestHead& head, int64_t bytes) {
    return health_reserve_.Charge(client, head, bytes);
  };
}

RefusalCounter* Front::RefusalsAt(bool is_metrics_port) const {
  return is_metrics_port ? metrics_refusals_.get() : refusals_.get();
}

std::unique_ptr<ExchangeHandler> Front::MakeGrpc(std::vector<CallMethod> methods, int64_t max_message_bytes,
                                                 ByteLedger* ledger, bool needs_token) {
  GrpcHandler::Options options;
  options.max_message_bytes = max_message_bytes;
  options.min_bytes_per_second = options_.limits.min_bytes_per_second;
  options.ledger = ledger;
  options.charge_request = ChargeRequestsTo(ledger);
  options.origins = OriginsAt(ledger);
  options.refusals = RefusalsAt(ledger == nullptr);
  options.clock = deps_.clock;
  if (ledger != nullptr) {
    options.load_report = deps_.load_report;
  } else {
    // Probes at the metrics port balance no load, and send each check completely at once.
    options.silence_timeout = HealthReserve::kMaxCheckWait;
  }
  options.always_report_load = options_.always_report_load;
  options.check_arrival = CheckArrivalsAt(ledger);
  options.to_end = [jitter = deps_.retry_jitter](const absl::Status& status) {
    return ToCallEnd(status, jitter);
  };
  if (needs_token && deps_.tokens != nullptr) {
    options.check_token = [tokens = deps_.tokens](absl::string_view path,
                                                  absl::Span<const absl::string_view> authorizations) {
      return tokens->Check(authorizations, ScopeOfCall(path));
    };
  }
  return std::make_unique<GrpcHandler>(std::move(options), std::move(methods));
}

absl::StatusOr<std::unique_ptr<ExchangeHandler>> Front::MakeHttp(std::vector<HttpRoute> routes,
                                                                 int64_t max_message_bytes,
                                                                 ByteLedger* ledger, WorkPool* pool,
                                                                 WorkPool* short_pool, bool needs_token) {
  HttpService::Options options;
  options.max_body_bytes = static_cast<size_t>(max_message_bytes);
  options.min_bytes_per_second = options_.limits.min_bytes_per_second;
  options.origins = OriginsAt(ledger);
  options.ledger = ledger;
  options.charge_request = ChargeRequestsTo(ledger);
  options.pool = pool;
  options.short_pool = short_pool;
  options.check_arrival = CheckArrivalsAt(ledger);
  options.refusals = RefusalsAt(ledger == nullptr);
  options.to_http = [jitter = deps_.retry_jitter](const absl::Status& status) {
    return ToHttp(status, jitter);
  };
  if (needs_token && deps_.tokens != nullptr) options.guard = TokenGuard(deps_.tokens);
  return HttpService::Create(std::move(options), std::move(routes));
}

absl::StatusOr<std::unique_ptr<Port>> Front::OpenPort(const std::string& flag, const Address& address,
                                                      ExchangeHandler* handler, const HttpLimits* http_limits,
                                                      ConnectionLimits* limits, bool is_plain) {
  PortOptions options;
  // Requests at the metrics port are short, so a new connection may replace a busy one if the port is full.
  const bool is_metrics_port = limits == &metrics_connection_limits_;
  options.replaces_busy = is_metrics_port;
  options.port_flag = flag;
  options.host = address.host;
  options.port = address.port;
  for (const auto& loop : loops_) options.loops.push_back(loop.get());
  if (!is_plain && deps_.certificates != nullptr) {
    options.tls = [certificates = deps_.certificates] { return certificates->current()->context; };
  }
  options.min_bytes_per_second = http_limits->min_bytes_per_second;
  options.write_grace = http_limits->transfer_grace;
  options.limits = limits;
  options.refusals = RefusalsAt(is_metrics_port);
  options.make_session = [handler, http_limits, refusals = options.refusals](Transport* transport) {
    return MakeHttpSession(transport, handler, http_limits, refusals);
  };
  return Port::Open(std::move(options));
}

absl::Status Front::Open(Services services) {
  std::vector<Loop*> loops;
  for (const auto& loop : loops_) loops.push_back(loop.get());
  Append(health_.Methods(), &services.methods);
  Append(ReflectionMethods({"saccade.v1.Vision", "inference.GRPCInferenceService", "grpc.health.v1.Health"}),
         &services.methods);
  grpc_ = MakeGrpc(std::move(services.methods), options_.max_message_bytes, deps_.ledger, true);
  auto http = MakeHttp(std::move(services.routes), options_.max_message_bytes, deps_.ledger, pool_.get(),
                       short_pool_.get(), true);
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  dispatcher_ = std::make_unique<RequestDispatcher>(grpc_.get(), http_.get(), loops);

  // Probes are answered even if the ledger is full, so they are not charged.
  const bool is_plain = options_.plain_metrics;
  metrics_grpc_ = MakeGrpc(MetricsMethods(health_.Methods()), kMaxMetricsMessage, nullptr, !is_plain);
  auto metrics_http = MakeHttp(std::move(services.metrics_routes), kMaxMetricsMessage, nullptr,
                               metrics_pool_.get(), nullptr, !is_plain);
  if (!metrics_http.ok()) return metrics_http.status();
  metrics_http_ = *std::move(metrics_http);
  metrics_dispatcher_ = std::make_unique<RequestDispatcher>(metrics_grpc_.get(), metrics_http_.get(), loops);

  auto port =
      OpenPort("--grpc-port", options_.grpc, dispatcher_.get(), &options_.limits, &connection_limits_, false);
  if (!port.ok()) return port.status();
  grpc_port_ = *std::move(port);
  port =
      OpenPort("--http-port", options_.http, dispatcher_.get(), &options_.limits, &connection_limits_, false);
  if (!port.ok()) return port.status();
  http_port_ = *std::move(port);
  port = OpenPort("--metrics-port", options_.metrics, metrics_dispatcher_.get(), &metrics_limits_,
                  &metrics_connection_limits_, is_plain);
  if (!port.ok()) return port.status();
  metrics_port_ = *std::move(port);
  are_open_.store(true);
  return absl::OkStatus();
}

size_t Front::open_requests() const { return grpc_port_->open_requests() + http_port_->open_requests(); }

int64_t Front::cut_requests() const { return refusals_->cut(); }

void Front::RefreshMetrics() {
  if (!are_open_.load()) return;
  metrics_->SetConnections(kGrpcPort, grpc_port_->connections());
  metrics_->SetConnections(kHttpPort, http_port_->connections());
  metrics_->SetConnections(kMetricsPort, metrics_port_->connections());
  metrics_->SetOpenRequests(open_requests());
}

void Front::GoAway(absl::Duration grace) {
  health_.EndWatches();
  grpc_port_->Drain(grace);
  http_port_->Drain(grace);
}

void Front::ClosePorts() {
  if (grpc_port_ != nullptr) grpc_port_->Close();
  if (http_port_ != nullptr) http_port_->Close();
}

void Front::Stop() {
  ClosePorts();
  if (metrics_port_ != nullptr) metrics_port_->Close();
  metrics_pool_.reset();
  message_pool_.reset();
  // Its tasks may go on in the other pool.
  short_pool_.reset();
  pool_.reset();
  // Ports refer to the loops to their end.
  grpc_port_.reset();
  http_port_.reset();
  metrics_port_.reset();
  loops_.clear();
}

}  // namespace saccade::server
