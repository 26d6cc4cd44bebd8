#include "server/grpc/testing/grpc_runtime.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/core/clock.h"

namespace saccade::server {
namespace {

CallStart StartOf(const grpc::GenericCallbackServerContext& context) {
  CallStart start{.method = context.method(),
                  .client = context.peer(),
                  .address = context.peer(),
                  .metadata = {},
                  .arrival = Clock::Real()->Now(),
                  .deadline = absl::InfiniteFuture()};
  for (const auto& [name, value] : context.client_metadata()) {
    start.metadata.emplace_back(std::string(name.data(), name.size()),
                                std::string(value.data(), value.size()));
  }
  if (context.deadline() != std::chrono::system_clock::time_point::max()) {
    start.deadline = start.arrival + (absl::FromChrono(context.deadline()) - absl::Now());
  }
  return start;
}

BytePieces PiecesOf(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  buffer.Dump(slices.get());
  BytePieces pieces({}, slices);
  for (const grpc::Slice& slice : *slices)
    pieces.Add({reinterpret_cast<const char*>(slice.begin()), slice.size()});
  return pieces;
}

grpc::ByteBuffer BufferOf(const BytePieces& bytes) {
  std::string whole(bytes.size(), '\0');
  bytes.CopyTo(whole.data());
  const grpc::Slice slice(whole);
  return grpc::ByteBuffer(&slice, 1);
}

// Deletes itself when the call is over. gRPC reports events on several threads at once; the handler gets them
// one after the other.
class RuntimeCall final : public grpc::ServerGenericBidiReactor, public Call {
 public:
  RuntimeCall(grpc::GenericCallbackServerContext* context, std::shared_ptr<CallHandler> handler)
      : context_(context), start_(StartOf(*context)), handler_(std::move(handler)) {
    Invoke([this] { handler_->OnStart(this); });
  }

  const CallStart& start() const override { return start_; }
  void Read() override { StartRead(&received_); }
  void Send(BytePieces message) override {
    const std::lock_guard lock(mutex_);
    sent_ = BufferOf(message);
    sending_ = true;
    StartWrite(&sent_);
  }
  void Finish(CallEnd end) override {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
      // gRPC wants the message to be written before the end is given to it.
      if (sending_) {
        end_ = std::move(end);
        return;
      }
    }
    // Not under the lock: this object may be deleted meanwhile.
    FinishNow(end);
  }
  absl::StatusCode cancel_code() const override {
    return start_.deadline <= Clock::Real()->Now() ? absl::StatusCode::kDeadlineExceeded
                                                   : absl::StatusCode::kCancelled;
  }

  // gRPC's events.
  void OnReadDone(bool ok) override {
    if (ok) {
      Invoke([this] { handler_->OnMessage(PiecesOf(received_)); });
    } else if (!context_->IsCancelled()) {
      Invoke([this] { handler_->OnHalfClose(); });
    }
  }
  void OnWriteDone(bool ok) override {
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      sending_ = false;
      finish = end_.has_value();
    }
    if (finish) FinishNow(*end_);
    Invoke([this, ok] { handler_->OnSent(ok); });
  }
  void OnCancel() override {
    Invoke([this] { handler_->OnCancel(); });
  }
  void OnDone() override {
    handler_->OnDone();
    delete this;
  }

 private:
  // Runs `event`, and those that come meanwhile, unless another thread does. After Finish() there is nothing
  // to tell.
  void Invoke(std::function<void()> event) {
    std::unique_lock lock(mutex_);
    events_.push_back(std::move(event));
    if (invoking_) return;
    invoking_ = true;
    while (!events_.empty()) {
      const std::function<void()> next = std::move(events_.front());
      events_.pop_front();
      if (finished_) continue;
      lock.unlock();
      next();
      lock.lock();
    }
    invoking_ = false;
  }

  void FinishNow(const CallEnd& end) {
    for (const auto& [name, value] : end.trailers) context_->AddTrailingMetadata(name, value);
    ServerBidiReactor::Finish(grpc::Status(static_cast<grpc::StatusCode>(end.status.code()),
                                           std::string(end.status.message()), end.details));
  }

  grpc::GenericCallbackServerContext* const context_;
  const CallStart start_;
  const std::shared_ptr<CallHandler> handler_;
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sent_;
  std::mutex mutex_;
  std::deque<std::function<void()>> events_;
  bool invoking_ = false;
  bool sending_ = false;
  bool finished_ = false;
  std::optional<CallEnd> end_;
};

}  // namespace

class GrpcRuntime::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::vector<CallMethod> methods) {
    for (CallMethod& method : methods) methods_.emplace(method.path, std::move(method));
  }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const auto method = methods_.find(context->method());
    if (method == methods_.end()) return CallbackGenericService::CreateReactor(context);
    return new RuntimeCall(context, method->second.make());
  }

 private:
  std::map<std::string, CallMethod> methods_;
};

GrpcRuntime::GrpcRuntime() = default;

GrpcRuntime::~GrpcRuntime() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::unique_ptr<GrpcRuntime> GrpcRuntime::Start(std::vector<CallMethod> methods, int max_message_bytes) {
  std::unique_ptr<GrpcRuntime> runtime(new GrpcRuntime());
  runtime->service_ = std::make_unique<Service>(std::move(methods));
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.SetMaxSendMessageSize(max_message_bytes);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &runtime->port_);
  builder.RegisterCallbackGenericService(runtime->service_.get());
  runtime->server_ = builder.BuildAndStart();
  if (runtime->server_ == nullptr) return nullptr;
  return runtime;
}

}  // namespace saccade::server
