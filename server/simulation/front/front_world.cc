#include "server/simulation/front/front_world.h"

#include <algorithm>
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
#include "server/http/http_session.h"
#include "server/simulation/front/checked_ledger.h"
#include "server/simulation/front/scripted_peer.h"

namespace saccade::server::simulation {
namespace {

constexpr int64_t kLedgerBytes = int64_t{700} << 10;
constexpr int64_t kMaxMessage = int64_t{320} << 10;
// Half of the ledger, which is more than the largest message (ClientShares).
constexpr int64_t kClientBytes = kLedgerBytes / 2;
constexpr absl::Duration kRun = absl::Seconds(90);
// A polite client's call takes at most this long.
constexpr absl::Duration kPatience = absl::Seconds(40);
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
  World(uint64_t seed, FrontFault fault) : fault_(fault), random_(seed), clock_(&loop_) {
    // The checks know nothing of the smaller bound.
    const int64_t bytes = fault == FrontFault::kRefusesTooEarly ? kLedgerBytes / 4 : kLedgerBytes;
    admission_ =
        Admission::Create({.max_inflight_bytes = bytes, .max_message_bytes = kMaxMessage}, &clock_).value();
    ledger_ = std::make_unique<CheckedLedger>(
        admission_.get(), CheckedLedger::Bounds{.bytes = kLedgerBytes, .client_bytes = kClientBytes},
        [this](std::string what) { Violate(std::move(what)); });
    handler_ = std::make_unique<GrpcHandler>(HandlerOptions(), Methods());
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
    std::unique_ptr<SessionPipe> pipe;
    std::unique_ptr<ScriptedPeer> peer;
    absl::Time unread_since = absl::InfiniteFuture();
  };

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
  GrpcHandler::Options HandlerOptions();
  std::vector<CallMethod> Methods();
  void Connect();
  void Step(absl::Time end);
  void EndStalled(Client& client);
  void CheckLedger();
  void CheckPolite(const Client& client, FrontResult& result);

  const FrontFault fault_;
  std::vector<std::string> violations_;
  Random random_;
  ManualLoop loop_;
  LoopClock clock_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<CheckedLedger> ledger_;
  const HttpLimits limits_{.max_streams = kMaxStreams, .idle_timeout = absl::Seconds(30)};
  std::unique_ptr<GrpcHandler> handler_;
  std::vector<Client> clients_;
  std::multimap<absl::Time, Loop::Task> later_;
  CallCounts counts_;
  // Unary calls of each client that the service has failed.
  std::map<std::string, int> failed_as_drawn_;
  // For FrontFault::kKeepsUnaryCalls.
  std::vector<std::shared_ptr<UnaryCall>> kept_;
};

GrpcHandler::Options World::HandlerOptions() {
  GrpcHandler::Options options;
  options.max_message_bytes = kMaxMessage;
  options.ledger = ledger_.get();
  options.clock = &clock_;
  if (fault_ == FrontFault::kStarvesPolite) {
    options.check_arrival = [this](const RequestHead& /*head*/, const Peer& peer) -> absl::StatusOr<Caller> {
      for (const Client& client : clients_) {
        if (client.pipe->peer().address == peer.address && client.peer->behaviour() == Behaviour::kPolite)
          return absl::ResourceExhaustedError("starved");
      }
      return CallerAt(peer);
    };
  }
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

void World::Connect() {
  const auto number = clients_.size();
  Client client;
  client.pipe = std::make_unique<SessionPipe>(&loop_, Peer{absl::StrCat("10.0.0.", number), false, false});
  client.pipe->Open(MakeHttpSession(client.pipe.get(), handler_.get(), &limits_, nullptr));
  const auto behaviour =
      random_.Chance(0.5) ? Behaviour::kPolite : static_cast<Behaviour>(random_.Below(kBehaviours));
  client.peer = std::make_unique<ScriptedPeer>(client.pipe.get(), behaviour, &random_, loop_.Now());
  clients_.push_back(std::move(client));
}

void World::EndStalled(Client& client) {
  if (client.pipe->lost() || client.pipe->output().empty()) {
    client.unread_since = absl::InfiniteFuture();
    return;
  }
  client.unread_since = std::min(client.unread_since, loop_.Now());
  if (loop_.Now() - client.unread_since > kStalledDownload) client.pipe->Break();
}

void World::CheckLedger() {
  const int64_t held = admission_->inflight().bytes;
  if (held < 0 || held > kLedgerBytes) Violate(absl::StrCat("the ledger holds ", held, " bytes"));
  if (held != ledger_->held())
    Violate(absl::StrCat("the ledger holds ", held, " bytes, and ", ledger_->held(), " were charged"));
}

void World::Step(absl::Time end) {
  absl::Time next = end;
  for (const Client& client : clients_) next = std::min(next, client.peer->next());
  if (!later_.empty()) next = std::min(next, later_.begin()->first);
  loop_.AdvanceTo(std::max(next, loop_.Now()));
  while (!later_.empty() && later_.begin()->first <= loop_.Now()) {
    Loop::Task task = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    std::move(task)();
    loop_.RunUntilIdle();
  }
  for (Client& client : clients_) {
    if (client.peer->next() <= loop_.Now()) client.peer->Act(loop_.Now());
    EndStalled(client);
  }
  CheckLedger();
}

void World::CheckPolite(const Client& client, FrontResult& result) {
  if (client.peer->behaviour() != Behaviour::kPolite) return;
  const std::string name = CallerAt(client.pipe->peer()).client;
  // Calls that were refused with RESOURCE_EXHAUSTED: of one small message, of several, and of large ones.
  int refused_one = 0, refused_small = 0, refused = 0;
  int failed = 0;
  for (const auto& [stream, call] : client.peer->calls()) {
    const std::string what = absl::StrCat("stream ", stream, " of ", name);
    if (!call.ended) {
      if (loop_.Now() - call.begun > kPatience) Violate(absl::StrCat(what, " was not answered"));
      continue;
    }
    // Its message is all that it can be charged for.
    const bool is_one = call.is_small && !call.streaming;
    if (is_one) ++result.small_calls;
    if (call.unprocessed) {
      ++result.calls_refused;
      if (!result.drained && call.others_open < kMaxStreams)
        Violate(absl::StrCat(what, " was not processed, beside ", call.others_open, " others and no drain"));
    } else if (call.status == 0) {
      ++result.calls_answered;
      if (call.received != call.sent) Violate(absl::StrCat(what, " was answered with something else"));
    } else if (call.status == 8) {  // RESOURCE_EXHAUSTED
      ++result.calls_refused;
      ++refused;
      if (call.is_small) ++refused_small;
      if (is_one) ++refused_one;
    } else if (call.status == 14 && result.drained) {  // UNAVAILABLE
      ++result.calls_refused;
    } else if (call.status == 13 && !call.streaming) {  // as drawn
      ++result.calls_answered;
      ++failed;
    } else {
      Violate(absl::StrCat(what, " ended with ", call.status));
    }
  }
  result.small_calls_refused += refused_one;
  // A charge that the ledger refuses ends one call, and CheckedLedger has checked that it did not fit.
  const auto check = [&](int calls, const char* kind, int64_t max_bytes) {
    const int charges = ledger_->refusals(name, max_bytes);
    if (calls <= charges) return;
    Violate(absl::StrCat(name, " was refused ", calls, " ", kind, ", and the ledger refused it ", charges,
                         " charges of at most ", max_bytes, " bytes"));
  };
  check(refused_one, "calls of a small message", kMaxSmallMessage);
  // Messages that come before the service asks for them are charged like this.
  check(refused_small, "calls of small messages", Exchange::kFirstBodyBytes);
  check(refused, "calls", kLedgerBytes);
  if (failed > failed_as_drawn_[name])
    Violate(absl::StrCat(failed, " calls of ", name, " failed, ", failed_as_drawn_[name], " as drawn"));
}

FrontResult World::Run() {
  FrontResult result;
  const absl::Time start = loop_.Now();
  const int clients = 2 + static_cast<int>(random_.Below(10));
  const absl::Time drain =
      random_.Chance(0.3) ? start + absl::Milliseconds(random_.Below(5000)) : absl::InfiniteFuture();
  for (int i = 0; i < clients; ++i) Connect();
  while (loop_.Now() < start + kRun) {
    Step(start + kRun);
    if (loop_.Now() >= drain && !std::exchange(result.drained, true)) {
      for (Client& client : clients_)
        if (client.pipe->session() != nullptr) client.pipe->session()->Drain(absl::Seconds(1));
      loop_.RunUntilIdle();
    }
  }
  for (const Client& client : clients_) CheckPolite(client, result);
  for (Client& client : clients_) client.pipe->Break();
  while (!later_.empty()) Step(later_.begin()->first);
  loop_.Advance(absl::Minutes(1));
  if (counts_.begun != counts_.done)
    Violate(absl::StrCat(counts_.begun, " calls reached a service, ", counts_.done, " ended there"));
  if (const int64_t held = admission_->inflight().bytes; held != 0)
    Violate(absl::StrCat("the ledger holds ", held, " bytes after the last client has gone"));
  result.calls_begun = counts_.begun;
  result.violations = violations_;
  // Calls that are not finished would not be freed.
  kept_.clear();
  loop_.RunUntilIdle();
  return result;
}

}  // namespace

FrontResult RunFrontSeed(uint64_t seed, FrontFault fault) { return World(seed, fault).Run(); }

}  // namespace saccade::server::simulation
