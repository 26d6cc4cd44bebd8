// A handler of gRPC on virtual time, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core/clock.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/testing/fake_exchange.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/grpc/testing/framing.h"
#include "server/grpc/testing/scripted_handler.h"
#include "server/grpc/unary.h"
#include "server/net/testing/manual_loop.h"

namespace saccade::server {

// A clock that shows the time of a ManualLoop. AwaitUntil() must not be called.
class LoopClock final : public Clock {
 public:
  explicit LoopClock(const ManualLoop* loop) : loop_(loop) {}
  absl::Time Now() override { return loop_->Now(); }
  bool AwaitUntil(absl::Mutex* /*mu*/, const absl::Condition& /*condition*/,
                  absl::Time /*deadline*/) override {
    std::abort();
  }

 private:
  const ManualLoop* const loop_;
};

class CollectedRefusals final : public RefusalCounter {
 public:
  void Count(Refusal refusal) override { counted.push_back(refusal); }
  void CountCut(size_t requests) override { cut += requests; }
  std::vector<Refusal> counted;
  size_t cut = 0;
};

class GrpcHandlerTest : public testing::Test {
 protected:
  static constexpr char kPath[] = "/test.Service/Method";

  GrpcHandlerTest() {
    options_.max_message_bytes = 1 << 20;
    options_.ledger = &ledger_;
    options_.clock = &clock_;
    options_.refusals = &refusals_;
  }

  // Whatever happened to a call, nothing stays charged.
  ~GrpcHandlerTest() override { EXPECT_EQ(ledger_.charged(), 0); }

  // The handler of `methods` and of the scripted method at kPath.
  GrpcHandler& Handler(std::vector<CallMethod> methods = {}) {
    if (handler_ == nullptr) {
      methods.push_back(ScriptedHandler::Method(kPath, &script_));
      handler_ = std::make_unique<GrpcHandler>(options_, std::move(methods));
    }
    return *handler_;
  }

  // A request to kPath whose head has come.
  std::unique_ptr<FakeExchange> Begin(HttpHeaders fields = {}, const std::string& type = "application/grpc") {
    return BeginAt(FakeExchange::Head(kPath, std::move(fields), type));
  }
  std::unique_ptr<FakeExchange> BeginAt(RequestHead head) {
    auto exchange = std::make_unique<FakeExchange>(&loop_, std::move(head));
    exchange->Begin(Handler());
    return exchange;
  }

  // Asks for a message at the start, and for the next after each.
  void ReadAll() {
    script_.then = [this](const std::string& event) {
      if (event == "start" || event.rfind("message", 0) == 0) script_.call->Read();
    };
  }

  ManualLoop loop_;
  LoopClock clock_{&loop_};
  FakeLedger ledger_;
  CollectedRefusals refusals_;
  GrpcHandler::Options options_;
  CallScript script_;
  std::unique_ptr<GrpcHandler> handler_;
};

inline std::string Code(const FakeExchange& exchange) { return exchange.answer().Field("grpc-status"); }
inline std::string Message(const FakeExchange& exchange) { return exchange.answer().Field("grpc-message"); }

// A method that sends its request back.
inline CallMethod Echo() {
  return UnaryMethod("/test.Service/Echo", "test.Request",
                     [](const std::shared_ptr<UnaryCall>& call, const BytePieces& request) {
                       call->Respond(OwnedBytes("echo of " + TextOf(request)));
                     });
}

// A handler with Echo().
class RequestTest : public GrpcHandlerTest {
 protected:
  RequestTest() { Handler({Echo()}); }
};

}  // namespace saccade::server
