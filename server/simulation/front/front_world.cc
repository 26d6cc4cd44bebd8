#include "server/simulation/front/front_world.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admission/admission.h"
#include "server/core/clock.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/unary.h"
#include "server/http/http_session.h"
#include "server/simulation/front/scripted_peer.h"

namespace saccade::server::simulation {
namespace {

constexpr int64_t kLedgerBytes = int64_t{700} << 10;
constexpr int64_t kMaxMessage = int64_t{320} << 10;
constexpr absl::Duration kRun = absl::Seconds(90);
// A polite client's call takes at most this long.
constexpr absl::Duration kPatience = absl::Seconds(40);
// What the connection below the session does with a client that does not read.
constexpr absl::Duration kStalledDownload = absl::Seconds(20);

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

GrpcHandler::Options OptionsOf(ByteLedger* ledger, Clock* clock) {
  GrpcHandler::Options options;
  options.max_message_bytes = kMaxMessage;
  options.ledger = ledger;
  options.clock = clock;
  return options;
}

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), clock_(&loop_) {
    admission_ =
        Admission::Create({.max_inflight_bytes = kLedgerBytes, .max_message_bytes = kMaxMessage}, &clock_)
            .value();
    handler_ = std::make_unique<GrpcHandler>(
        OptionsOf(admission_.get(), &clock_),
        std::vector<CallMethod>{
            UnaryMethod("/echo.Echo/Unary", "echo.Text",
                        [this](std::shared_ptr<UnaryCall> call, BytePieces request) {
                          Answer(std::move(call), std::move(request));
                        }),
            {"/echo.Echo/Stream", [this] { return std::make_shared<EchoStream>(this); }}});
  }

  FrontResult Run();

 private:
  // Echoes each message after a while.
  class EchoStream final : public CallHandler, public std::enable_shared_from_this<EchoStream> {
   public:
    explicit EchoStream(World* world) : world_(world) { ++world->begun_; }
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
      ++world_->done_;
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
    ++begun_;
    Later([this, call = std::move(call), request = std::move(request)]() mutable {
      ++done_;
      if (random_.Chance(0.1)) {
        call->Fail({absl::InternalError("as drawn")});
      } else {
        call->Respond(std::move(request));
      }
    });
  }
  void Connect();
  void Step(absl::Time end);
  void EndStalled(Client& client);
  void CheckLedger();
  void CheckPolite(const Client& client, FrontResult& result);

  Random random_;
  ManualLoop loop_;
  LoopClock clock_;
  std::unique_ptr<Admission> admission_;
  const HttpLimits limits_{.max_streams = 8, .idle_timeout = absl::Seconds(30)};
  std::unique_ptr<GrpcHandler> handler_;
  std::vector<Client> clients_;
  std::multimap<absl::Time, Loop::Task> later_;
  int begun_ = 0;
  int done_ = 0;
  std::vector<std::string> violations_;
};

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
  for (const auto& [stream, call] : client.peer->calls()) {
    if (client.peer->behaviour() != Behaviour::kPolite) continue;
    const std::string name = absl::StrCat("stream ", stream, " of ", client.pipe->peer().address);
    if (!call.ended) {
      if (loop_.Now() - call.begun > kPatience) Violate(absl::StrCat(name, " was not answered"));
      continue;
    }
    if (call.unprocessed) {
      ++result.calls_refused;
    } else if (call.status == 0) {
      ++result.calls_answered;
      if (call.received != call.sent) Violate(absl::StrCat(name, " was answered with something else"));
    } else if (call.status == 8 || call.status == 14) {  // RESOURCE_EXHAUSTED, UNAVAILABLE
      ++result.calls_refused;
    } else if (call.status == 13 && !call.streaming) {  // as drawn
      ++result.calls_answered;
    } else {
      Violate(absl::StrCat(name, " ended with ", call.status));
    }
  }
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
  if (begun_ != done_) Violate(absl::StrCat(begun_, " calls reached a service, ", done_, " ended there"));
  if (const int64_t held = admission_->inflight().bytes; held != 0)
    Violate(absl::StrCat("the ledger holds ", held, " bytes after the last client has gone"));
  result.calls_begun = begun_;
  result.violations = violations_;
  return result;
}

}  // namespace

FrontResult RunFrontSeed(uint64_t seed) { return World(seed).Run(); }

}  // namespace saccade::server::simulation
