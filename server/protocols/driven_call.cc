#include "server/protocols/driven_call.h"

#include <utility>

#include "absl/status/status.h"

namespace saccade::server {

void DrivenCall::OnStart(Call* call) {
  call_ = call;
  start_ = call->shared_start();
  OnArrival();
  Proceed();
}

void DrivenCall::Proceed() {
  // After Finish(), the server may drop its reference at any time.
  const std::shared_ptr<DrivenCall> keep = shared_from_this();
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  try {
    Act();
  } catch (...) {
    // Without an end the call would never be freed.
    if (!std::exchange(finished_, true)) {
      call_->Finish(
          {absl::InternalError("the server failed to handle the call because of an error of its own")});
    }
  }
}

void DrivenCall::Act() {
  Action action = NextAction();
  while (!std::holds_alternative<std::monostate>(action)) {
    if (auto* const end = std::get_if<CallEnd>(&action)) {
      finished_ = true;
      call_->Finish(std::move(*end));
      return;
    }
    Action next = NextAction();
    if (auto* const message = std::get_if<BytePieces>(&action)) {
      if (auto* const end = std::get_if<CallEnd>(&next)) {
        finished_ = true;
        call_->SendAndFinish(std::move(*message), std::move(*end));
        return;
      }
      call_->Send(std::move(*message));
    } else {
      call_->Read();
    }
    action = std::move(next);
  }
}

}  // namespace saccade::server
