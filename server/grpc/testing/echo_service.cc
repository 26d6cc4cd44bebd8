#include "server/grpc/testing/echo_service.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "echo.pb.h"
#include "server/grpc/unary.h"

namespace saccade::server {
namespace {

using ::saccade::testing::EchoRequest;
using ::saccade::testing::EchoResponse;

EchoRequest Parse(const BytePieces& bytes) {
  std::string whole(bytes.size(), '\0');
  bytes.CopyTo(whole.data());
  EchoRequest request;
  request.ParseFromString(whole);
  return request;
}

BytePieces Respond(const std::string& payload, int64_t number) {
  EchoResponse response;
  response.set_payload(payload);
  response.set_number(number);
  const auto bytes = std::make_shared<std::string>(response.SerializeAsString());
  return BytePieces(*bytes, bytes);
}

CallEnd EndOf(const EchoRequest& request, const CallStart& start) {
  CallEnd end{absl::Status(static_cast<absl::StatusCode>(request.code()), request.message()),
              request.details()};
  for (const auto& [name, value] : start.metadata) {
    if (absl::StartsWith(name, "x-echo")) end.trailers.emplace_back(name, value);
  }
  return end;
}

void AnswerUnary(std::shared_ptr<UnaryCall> call, const BytePieces& bytes) {
  std::thread([call = std::move(call), request = Parse(bytes)] {
    CallEnd end = EndOf(request, call->start());
    // A response comes with its trailers only from a stream; a unary call fails or brings a response.
    if (!end.status.ok() || !end.trailers.empty()) return call->Fail(std::move(end));
    call->Respond(Respond(request.payload(), 0));
  }).detach();
}

class EchoStream : public CallHandler {
 public:
  void OnStart(Call* call) override {
    call_ = call;
    call_->Read();
  }
  void OnHalfClose() override { call_->Finish(EndOf(request_, call_->start())); }
  void OnCancel() override { call_->Finish({absl::CancelledError("cancelled")}); }
  void OnSent(bool /*ok*/) override {}
  void OnDone() override {}

 protected:
  Call* call_ = nullptr;
  // The last one.
  EchoRequest request_;
};

class CollectStream final : public EchoStream {
  void OnMessage(BytePieces message) override {
    request_ = Parse(message);
    bytes_ += static_cast<int64_t>(request_.payload().size());
    call_->Read();
  }
  void OnHalfClose() override { call_->SendAndFinish(Respond("", bytes_), EndOf(request_, call_->start())); }

  int64_t bytes_ = 0;
};

class ChatStream final : public EchoStream {
  void OnMessage(BytePieces message) override {
    request_ = Parse(message);
    sent_ = 0;
    SendNext();
  }
  void OnSent(bool ok) override {
    if (ok) SendNext();
  }

  void SendNext() {
    if (sent_ == request_.responses()) return call_->Read();
    call_->Send(Respond(request_.payload(), sent_++));
  }

  int sent_ = 0;
};

class SleepStream final : public EchoStream {
  void OnMessage(BytePieces /*message*/) override {}
};

template <typename Handler>
CallMethod Method(const char* path) {
  return {.path = path, .make = [] { return std::make_shared<Handler>(); }};
}

}  // namespace

std::vector<CallMethod> EchoMethods() {
  return {UnaryMethod("/saccade.testing.Echo/Unary", "saccade.testing.EchoRequest", AnswerUnary),
          Method<CollectStream>("/saccade.testing.Echo/Collect"),
          Method<ChatStream>("/saccade.testing.Echo/Expand"),
          Method<ChatStream>("/saccade.testing.Echo/Chat"),
          Method<SleepStream>("/saccade.testing.Echo/Sleep")};
}

}  // namespace saccade::server
