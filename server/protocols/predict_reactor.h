// A unary call of gRPC's callback API whose answer comes later, from the pipeline.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/core/cancellation.h"
#include "server/core/clock.h"
#include "server/protocols/slow_readers.h"

namespace saccade::server {

class AnswerCharge;

// Owned by gRPC from the moment it is returned to it; deletes itself when the call is over. The request and
// response messages live until Finish, so the pipeline may point into them.
class PredictReactor : public grpc::ServerUnaryReactor {
 public:
  // Raised when the client goes away or its deadline passes; the pipeline then answers soon, for nobody.
  std::shared_ptr<Cancellation> cancellation() const { return cancellation_; }

  // The answer is about to be sent, and may take as long as `readers` allows, which outlives this. `charge`,
  // if there is one, is kept until it is.
  void Sends(grpc::CallbackServerContext* context, SlowReaders* readers,
             std::shared_ptr<const AnswerCharge> charge) {
    if (charge == nullptr) return;
    charge_ = std::move(charge);
    readers_ = readers;
    call_ = context->c_call();
    readers_->Watch(call_);
  }

  void OnCancel() override { cancellation_->Cancel(); }
  void OnDone() override {
    if (readers_ != nullptr) readers_->Forget(call_);
    delete this;
  }

 private:
  // Both are trivial: gRPC need not wake a thread of its own for them. (It calls this internal; should it go,
  // so may this.)
  bool InternalInlineable() override { return true; }

  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  std::shared_ptr<const AnswerCharge> charge_;
  SlowReaders* readers_ = nullptr;
  grpc_call* call_ = nullptr;
};

// gRPC tells it by the wall's clock, which may be set before it is past.
inline absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  return deadline == std::chrono::system_clock::time_point::max()
             ? absl::InfiniteFuture()
             : Clock::Real()->Now() + (absl::FromChrono(deadline) - absl::Now());
}

// For calls that are answered at once.
inline grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace saccade::server
