#include "server/simulation/front/front_world.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admission/admission.h"
#include "server/core/byte_ledger.h"
#include "server/core/clock.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/unary.h"
#include "server/http/caller.h"
#include "server/http/head_memory.h"
#include "server/http/http_service.h"
#include "server/http/http_session.h"
#include "server/net/work_pool.h"
#include "server/simulation/front/checked_dispatcher.h"
#include "server/simulation/front/checked_ledger.h"
#include "server/simulation/front/client_facts.h"
#include "server/simulation/front/grpc_checks.h"
#include "server/simulation/front/http1_checks.h"
#include "server/simulation/front/http1_peer.h"
#include "server/simulation/front/http_echo.h"
#include "server/simulation/front/scripted_peer.h"

namespace saccade::server::simulation {
namespace {

constexpr int64_t kLedgerBytes = int64_t{900} << 10;
constexpr int64_t kMaxMessage = int64_t{320} << 10;
// Half of the ledger, which is more than the largest message (ClientShares).
constexpr int64_t kClientBytes = kLedgerBytes / 2;
constexpr absl::Duration kRun = absl::Seconds(90);
// A polite client's request takes at most this long.
constexpr absl::Duration kPatience = absl::Seconds(40);
// A body over HTTP must come at the usual rate after this time. GrpcHandler's messages have the same.
constexpr absl::Duration kBodyGrace = absl::Seconds(1);
// What the connection below the session does with a client that does not read.
constexpr absl::Duration kStalledDownload = absl::Seconds(20);
// Open streams of one connection.
constexpr int kMaxStreams = 8;

class LoopClock final : public Clock {
 public:
  explicit LoopClock(const Loop* loop) : loop_(loop) {}
  absl::Time Now() override { return loop_->Now(); }
  bool AwaitUntil(absl::Mutex* /*mu*/, const absl::Condition& condition, absl::Time /*deadline*/) override {
    return condition.Eval();
  }

 private:
  const Loop* const loop_;
};

struct CallCounts {
  int begun = 0;
  int done = 0;
};

// Passes everything on to a service's handler, and counts the calls that the front begins and ends.
class CountedHandler final : public CallHandler {
 public:
  CountedHandler(std::shared_ptr<CallHandler> handler, CallCounts* counts)
      : handler_(std::move(handler)), counts_(counts) {}

  void OnStart(Call* call) override {
    ++counts_->begun;
    handler_->OnStart(call);
  }
  void OnMessage(BytePieces message) override { handler_->OnMessage(std::move(message)); }
  void OnHalfClose() override { handler_->OnHalfClose(); }
  void OnSent(bool ok) override { handler_->OnSent(ok); }
  void OnCancel() override { handler_->OnCancel(); }
  bool OnShutdown(const CallEnd& end) override { return handler_->OnShutdown(end); }
  void OnDone() override {
    ++counts_->done;
    handler_->OnDone();
  }

 private:
  const std::shared_ptr<CallHandler> handler_;
  CallCounts* const counts_;
};

class World {
 public:
  World(uint64_t seed, FrontFault fault)
      : fault_(fault),
        random_(seed),
        clock_(&loop_),
        echo_(EchoFaultOf(fault), &random_, [this](Loop::Task task) { Later(std::move(task)); }) {
    // The checks know nothing of the smaller bound.
    const int64_t bytes = fault == FrontFault::kRefusesTooEarly ? kLedgerBytes / 4 : kLedgerBytes;
    admission_ =
        Admission::Create({.max_inflight_bytes = bytes, .max_message_bytes = kMaxMessage}, &clock_).value();
    ledger_ = std::make_unique<CheckedLedger>(
        admission_.get(), CheckedLedger::Bounds{.bytes = kLedgerBytes, .client_bytes = kClientBytes},
        [this](std::string what) { Violate(std::move(what)); });
    grpc_ = std::make_unique<GrpcHandler>(GrpcOptions(), Methods());
    http_ = HttpService::Create(HttpOptions(), echo_.Routes()).value();
    dispatcher_ = std::make_unique<CheckedDispatcher>(grpc_.get(), http_.get(),
                                                      [this](std::string what) { Violate(std::move(what)); });
  }

  FrontResult Run();

 private:
  // Echoes each message after a while.
  class EchoStream final : public CallHandler, public std::enable_shared_from_this<EchoStream> {
   public:
    explicit EchoStream(World* world) : world_(world) {}
    void OnStart(Call* call) override {
      call_ = call;
      call_->Read();
    }
    void OnMessage(BytePieces message) override {
      world_->Later([self = shared_from_this(), message = std::move(message)]() mutable {
        self->waiting_ = false;
        if (self->cancelled_) {
          self->End(absl::CancelledError("cancelled"));
        } else {
          self->call_->Send(std::move(message));
        }
      });
      waiting_ = true;
    }
    void OnHalfClose() override { End(absl::OkStatus()); }
    void OnSent(bool ok) override {
      if (!ok || cancelled_) {
        End(absl::CancelledError("the client is gone"));
      } else {
        call_->Read();
      }
    }
    void OnCancel() override {
      cancelled_ = true;
      if (!waiting_) End(absl::CancelledError("cancelled"));
    }
    void OnDone() override {
      if (!ended_) world_->Violate("a call was done before it was finished");
    }

   private:
    void End(absl::Status status) {
      if (std::exchange(ended_, true)) return;
      call_->Finish({std::move(status)});
    }

    World* const world_;
    Call* call_ = nullptr;
    bool waiting_ = false;
    bool cancelled_ = false;
    bool ended_ = false;
  };

  struct Client {
    Peer address;
    // One of the two.
    std::unique_ptr<ScriptedPeer> grpc;
    std::unique_ptr<Http1Peer> http1;
    absl::Time unread_since = absl::InfiniteFuture();

    FrontPeer& peer() const {
      if (grpc != nullptr) return *grpc;
      return *http1;
    }
    // Null if it has no connection.
    Session* session() const { return peer().pipe() == nullptr ? nullptr : peer().pipe()->session(); }
  };

  static HttpEcho::Fault EchoFaultOf(FrontFault fault) {
    switch (fault) {
      case FrontFault::kKeepsHttpBodies:
        return HttpEcho::Fault::kKeepsBodies;
      case FrontFault::kMixesHttpAnswers:
        return HttpEcho::Fault::kMixesAnswers;
      default:
        return HttpEcho::Fault::kNone;
    }
  }

  void Violate(std::string what) {
    if (violations_.size() < 20) violations_.push_back(std::move(what));
  }
  // As an engine's thread would: outside of the front's callbacks.
  void Later(Loop::Task task) {
    later_.emplace(loop_.Now() + absl::Milliseconds(random_.Below(200)), std::move(task));
  }
  void Answer(std::shared_ptr<UnaryCall> call, BytePieces request) {
    Later([this, call = std::move(call), request = std::move(request)]() mutable {
      if (fault_ == FrontFault::kKeepsUnaryCalls) {
        kept_.push_back(std::move(call));
      } else if (random_.Chance(0.1)) {
        ++failed_as_drawn_[call->start().client];
        call->Fail({absl::InternalError("as drawn")});
      } else {
        call->Respond(std::move(request));
      }
    });
  }
  // Null unless the fault needs one.
  ArrivalCheck MakeArrivalCheck() const;
  GrpcHandler::Options GrpcOptions();
  HttpService::Options HttpOptions();
  std::vector<CallMethod> Methods();
  // A new connection; null if the server accepts no more.
  std::unique_ptr<SessionPipe> Connect(const Peer& address);
  void AddGrpcClient();
  void AddHttp1Client();
  Peer NextAddress() const { return {absl::StrCat("10.0.0.", clients_.size()), false, false}; }
  void Drain();
  void Step(absl::Time end);
  void EndStalled(Client& client);
  void CheckLedger();
  void CheckClients(FrontResult& result);

  const FrontFault fault_;
  std::vector<std::string> violations_;
  Random random_;
  ManualLoop loop_;
  LoopClock clock_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<CheckedLedger> ledger_;
  const HttpLimits limits_{.max_streams = kMaxStreams, .idle_timeout = absl::Seconds(30)};
  // Does nothing: all bodies are handled on the loop.
  WorkPool pool_{1, 16};
  HttpEcho echo_;
  std::unique_ptr<GrpcHandler> grpc_;
  std::unique_ptr<HttpService> http_;
  std::unique_ptr<CheckedDispatcher> dispatcher_;
  std::vector<Client> clients_;
  bool accepts_ = true;
  // InfiniteFuture() until it begins.
  absl::Time drain_began_ = absl::InfiniteFuture();
  std::multimap<absl::Time, Loop::Task> later_;
  CallCounts counts_;
  // Unary calls of each client that the service has failed.
  std::map<std::string, int> failed_as_drawn_;
  // For FrontFault::kKeepsUnaryCalls.
  std::vector<std::shared_ptr<UnaryCall>> kept_;
};

ArrivalCheck World::MakeArrivalCheck() const {
  if (fault_ != FrontFault::kStarvesPolite) return nullptr;
  return [this](const RequestHead& /*head*/, const Peer& peer) -> absl::StatusOr<Caller> {
    for (const Client& client : clients_) {
      if (client.address.address == peer.address && client.peer().is_polite())
        return absl::ResourceExhaustedError("starved");
    }
    return CallerAt(peer);
  };
}

GrpcHandler::Options World::GrpcOptions() {
  GrpcHandler::Options options;
  options.max_message_bytes = kMaxMessage;
  options.ledger = ledger_.get();
  options.clock = &clock_;
  options.check_arrival = MakeArrivalCheck();
  return options;
}

HttpService::Options World::HttpOptions() {
  HttpService::Options options;
  options.max_body_bytes = static_cast<size_t>(kMaxMessage);
  // Other threads would make the runs differ.
  options.max_bytes_on_loop = std::numeric_limits<size_t>::max();
  options.body_grace = kBodyGrace;
  options.check_arrival = MakeArrivalCheck();
  options.ledger = ledger_.get();
  options.charge_request = ChargeTo(ledger_.get());
  options.pool = &pool_;
  options.to_http = [](const absl::Status& status) {
    return HttpError(absl::IsResourceExhausted(status) ? 429 : 400, status.message());
  };
  return options;
}

std::vector<CallMethod> World::Methods() {
  std::vector<CallMethod> methods = {
      UnaryMethod("/echo.Echo/Unary", "echo.Text",
                  [this](std::shared_ptr<UnaryCall> call, BytePieces request) {
                    Answer(std::move(call), std::move(request));
                  }),
      {"/echo.Echo/Stream", [this] { return std::make_shared<EchoStream>(this); }}};
  for (CallMethod& method : methods) {
    method.make = [make = method.make, counts = &counts_] {
      return std::make_shared<CountedHandler>(make(), counts);
    };
  }
  return methods;
}

std::unique_ptr<SessionPipe> World::Connect(const Peer& address) {
  if (!accepts_) return nullptr;
  auto pipe = std::make_unique<SessionPipe>(&loop_, address);
  pipe->Open(MakeHttpSession(pipe.get(), dispatcher_.get(), &limits_, nullptr));
  return pipe;
}

void World::AddGrpcClient() {
  Client client;
  client.address = NextAddress();
  const auto behaviour =
      random_.Chance(0.5) ? Behaviour::kPolite : static_cast<Behaviour>(random_.Below(kBehaviours));
  client.grpc = std::make_unique<ScriptedPeer>(Connect(client.address), behaviour, &random_, loop_.Now());
  clients_.push_back(std::move(client));
}

void World::AddHttp1Client() {
  Client client;
  client.address = NextAddress();
  const auto behaviour = random_.Chance(0.5) ? Http1Behaviour::kPolite
                                             : static_cast<Http1Behaviour>(random_.Below(kHttp1Behaviours));
  client.http1 = std::make_unique<Http1Peer>([this, address = client.address] { return Connect(address); },
                                             behaviour, &random_, loop_.Now());
  clients_.push_back(std::move(client));
}

void World::EndStalled(Client& client) {
  SessionPipe* const pipe = client.peer().pipe();
  if (pipe == nullptr || pipe->lost() || pipe->output().empty()) {
    client.unread_since = absl::InfiniteFuture();
    return;
  }
  client.unread_since = std::min(client.unread_since, loop_.Now());
  if (loop_.Now() - client.unread_since <= kStalledDownload) return;
  pipe->Break();
  client.unread_since = absl::InfiniteFuture();
}

void World::CheckLedger() {
  const int64_t held = admission_->inflight().bytes;
  if (held < 0 || held > kLedgerBytes) Violate(absl::StrCat("the ledger holds ", held, " bytes"));
  if (held != ledger_->held())
    Violate(absl::StrCat("the ledger holds ", held, " bytes, and ", ledger_->held(), " were charged"));
}

void World::Step(absl::Time end) {
  absl::Time next = end;
  for (const Client& client : clients_) next = std::min(next, client.peer().next());
  if (!later_.empty()) next = std::min(next, later_.begin()->first);
  loop_.AdvanceTo(std::max(next, loop_.Now()));
  while (!later_.empty() && later_.begin()->first <= loop_.Now()) {
    Loop::Task task = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    std::move(task)();
    loop_.RunUntilIdle();
  }
  for (Client& client : clients_) {
    if (client.peer().next() <= loop_.Now()) client.peer().Act(loop_.Now());
    EndStalled(client);
  }
  CheckLedger();
}

void World::Drain() {
  drain_began_ = loop_.Now();
  accepts_ = false;
  for (Client& client : clients_) {
    if (client.http1 != nullptr) client.http1->OnDrain(loop_.Now());
    const bool forgotten = client.http1 != nullptr && fault_ == FrontFault::kForgetsHttp1InDrain;
    if (client.session() != nullptr && !forgotten) client.session()->Drain(absl::Seconds(1));
  }
  loop_.RunUntilIdle();
}

void World::CheckClients(FrontResult& result) {
  const OnViolation violate = [this](std::string what) { Violate(std::move(what)); };
  for (const Client& client : clients_) {
    const std::string name = CallerAt(client.address).client;
    const ClientFacts facts{.name = name,
                            .ledger = ledger_.get(),
                            .failed_as_drawn = failed_as_drawn_[name] + echo_.failed(name),
                            .now = loop_.Now(),
                            .drain = drain_began_,
                            .patience = kPatience,
                            .idle_timeout = limits_.idle_timeout,
                            .max_streams = kMaxStreams};
    if (client.grpc != nullptr) CheckGrpc(*client.grpc, facts, result, violate);
    if (client.http1 != nullptr) CheckHttp1(*client.http1, facts, &result.http1, violate);
  }
}

FrontResult World::Run() {
  FrontResult result;
  const absl::Time start = loop_.Now();
  const int64_t grpc_clients = 2 + random_.Below(10);
  const int64_t http1_clients = 1 + random_.Below(8);
  const absl::Time drain =
      random_.Chance(0.3) ? start + absl::Milliseconds(random_.Below(5000)) : absl::InfiniteFuture();
  for (int64_t i = 0; i < grpc_clients; ++i) AddGrpcClient();
  for (int64_t i = 0; i < http1_clients; ++i) AddHttp1Client();
  while (loop_.Now() < start + kRun) {
    Step(start + kRun);
    if (loop_.Now() >= drain && !std::exchange(result.drained, true)) Drain();
  }
  CheckClients(result);
  accepts_ = false;
  for (Client& client : clients_) {
    if (client.peer().pipe() != nullptr) client.peer().pipe()->Break();
  }
  while (!later_.empty()) Step(later_.begin()->first);
  loop_.Advance(absl::Minutes(1));
  if (counts_.begun != counts_.done)
    Violate(absl::StrCat(counts_.begun, " calls reached a service, ", counts_.done, " ended there"));
  if (dispatcher_->begun() != dispatcher_->over())
    Violate(absl::StrCat(dispatcher_->begun(), " requests have begun, ", dispatcher_->over(), " have ended"));
  if (const int64_t held = admission_->inflight().bytes; held != 0)
    Violate(absl::StrCat("the ledger holds ", held, " bytes after the last client has gone"));
  result.calls_begun = counts_.begun;
  result.violations = violations_;
  // Calls that are not finished would not be freed.
  kept_.clear();
  echo_.Clear();
  loop_.RunUntilIdle();
  return result;
}

}  // namespace

FrontResult RunFrontSeed(uint64_t seed, FrontFault fault) { return World(seed, fault).Run(); }

}  // namespace saccade::server::simulation
