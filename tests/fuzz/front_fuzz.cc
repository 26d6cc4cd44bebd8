// Fuzzes a connection: HTTP/1.1, HTTP/2, gRPC and gRPC-web, with services behind it, on virtual time. The
// first byte of the input is the size of the pieces, the second chooses how much of the output the client
// reads, and whether the client pauses: then each of the first pieces has one byte more in front, which says
// how much time passes before the piece is sent.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/admission/admission.h"
#include "server/core/fake_clock.h"
#include "server/grpc/grpc_handler.h"
#include "server/grpc/unary.h"
#include "server/http/http_service.h"
#include "server/http/http_session.h"
#include "server/net/testing/session_pipe.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/harness.h"

namespace saccade::fuzz {
namespace {

constexpr int64_t kLedgerBytes = 1 << 20;
// The bit of the second byte that says that the client pauses.
constexpr uint8_t kPauses = 4;
// Number of pauses, which bounds the time that an input takes.
constexpr int kMaxPauses = 32;

int begun = 0;
int done = 0;

// Echoes messages until the client sends no more.
class Echo final : public server::CallHandler {
 public:
  Echo() { ++begun; }
  void OnStart(server::Call* call) override {
    call_ = call;
    call->Read();
  }
  void OnMessage(server::BytePieces message) override { call_->Send(std::move(message)); }
  void OnHalfClose() override { End(absl::OkStatus()); }
  void OnSent(bool ok) override {
    if (ok) {
      call_->Read();
    } else {
      End(absl::CancelledError("the client is gone"));
    }
  }
  void OnCancel() override { End(absl::CancelledError("cancelled")); }
  void OnDone() override { ++done; }

 private:
  void End(absl::Status status) {
    if (std::exchange(ended_, true)) return;
    call_->Finish({std::move(status)});
  }

  server::Call* call_ = nullptr;
  bool ended_ = false;
};

// Chooses by the content type, like the daemon.
class Dispatcher final : public server::ExchangeHandler {
 public:
  Dispatcher(server::ByteLedger* ledger, server::Clock* clock, server::WorkPool* pool) {
    server::GrpcHandler::Options grpc;
    grpc.max_message_bytes = kLedgerBytes / 4;
    grpc.ledger = ledger;
    grpc.clock = clock;
    std::vector<server::CallMethod> methods = {
        server::UnaryMethod("/echo.Echo/Unary", "echo.Text",
                            [](const std::shared_ptr<server::UnaryCall>& call, server::BytePieces request) {
                              call->Respond(std::move(request));
                            }),
        {"/echo.Echo/Stream", [] { return std::make_shared<Echo>(); }}};
    grpc_ = std::make_unique<server::GrpcHandler>(std::move(grpc), std::move(methods));
    server::HttpService::Options http;
    http.max_body_bytes = kLedgerBytes / 4;
    http.max_bytes_on_loop = kLedgerBytes;
    http.ledger = ledger;
    http.pool = pool;
    http.to_http = [](const absl::Status& status) {
      return server::HttpError(429, absl::string_view(status.message()));
    };
    const auto echo = server::Responding([](const server::HttpRequest& request) {
      return server::HttpResponse{.body = std::string(request.body)};
    });
    http_ = *server::HttpService::Create(std::move(http), {{"GET", "/", echo}, {"POST", "/{name}", echo}});
  }

  std::unique_ptr<server::ExchangeReceiver> Begin(server::Exchange* exchange) override {
    return server::IsGrpc(exchange->head()) ? grpc_->Begin(exchange) : http_->Begin(exchange);
  }

 private:
  std::unique_ptr<server::GrpcHandler> grpc_;
  std::unique_ptr<server::HttpService> http_;
};

// From 1 ms to 65 s, so that every timer of a connection and of a call can run.
absl::Duration PauseOf(char byte) {
  const auto value = static_cast<uint8_t>(byte);
  return absl::Milliseconds(value * value);
}

// Waits until the bodies that were submitted are decompressed. They wait in the pool under the client's name.
void AwaitWork(server::WorkPool& pool) {
  absl::Notification decompressed;
  if (pool.Submit("ipv4:127.0.0.1", [&decompressed] { decompressed.Notify(); }))
    decompressed.WaitForNotification();
}

void Serve(std::string_view bytes, size_t step, uint8_t reading) {
  server::ManualLoop loop;
  server::FakeClock clock;
  const auto admission = server::Admission::Create(
      {.max_inflight_bytes = kLedgerBytes, .max_message_bytes = kLedgerBytes / 4}, &clock);
  Check(admission.ok(), "the options are sound");
  // Decompresses bodies.
  std::optional<server::WorkPool> pool(std::in_place, 1, 64);
  Dispatcher dispatcher(admission->get(), &clock, &*pool);
  const server::HttpLimits limits;
  const auto pass = [&](absl::Duration time) {
    clock.Advance(time);
    loop.Advance(time);
  };
  int pauses = (reading & kPauses) == 0 ? 0 : kMaxPauses;
  {
    server::SessionPipe pipe(&loop);
    pipe.Open(server::MakeHttpSession(&pipe, &dispatcher, &limits, nullptr));
    if (reading % 2 == 1) pipe.LimitRoom(reading);
    for (; !bytes.empty() && !pipe.lost(); bytes.remove_prefix(std::min(step, bytes.size()))) {
      if (pauses > 0) {
        --pauses;
        AwaitWork(*pool);
        pass(PauseOf(bytes.front()));
        bytes.remove_prefix(1);
      }
      // After the connection's end the bytes are dropped.
      pipe.Send(bytes.substr(0, step));
      Check((*admission)->inflight().bytes <= kLedgerBytes, "the ledger is within its bound");
      if (!pipe.lost()) {
        Check(pipe.output().size() <= server::Transport::kHighWater + kLedgerBytes, "the output is bounded");
      }
    }
    if (!pipe.lost() && reading % 4 < 2) pipe.EndSending();
    // Bodies are decompressed before the client goes.
    AwaitWork(*pool);
    pass(absl::Minutes(1));
    Touch(pipe.TakeOutput());
  }
  // Runs what waits there; without a client nothing is submitted any more.
  pool.reset();
  pass(absl::Minutes(1));
  Check((*admission)->inflight().bytes == 0, "the ledger is empty when the client has gone");
  Check(begun == done, "every call ends once");
}

}  // namespace
}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  if (size < 2) return 0;
  saccade::fuzz::Serve(saccade::fuzz::AsText(data + 2, size - 2), std::max<size_t>(1, data[0]), data[1]);
  return 0;
}
