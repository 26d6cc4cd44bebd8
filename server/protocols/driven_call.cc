#include "server/protocols/driven_call.h"

#include <new>
#include <utility>

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
  if (!failed_) {
    try {
      return Act();
    } catch (...) {
      failed_ = true;
    }
  }
  // Without an end the call would never be freed.
  call_->Finish({OwnError()});
  finished_ = true;
}

absl::Status DrivenCall::OwnError() {
  try {
    return absl::InternalError("the server failed to handle the call because of an error of its own");
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kInternal, "");
  }
}

absl::Status DrivenCall::Cancelled(absl::string_view why) {
  try {
    return absl::CancelledError(why);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kCancelled, "");
  }
}

void DrivenCall::Act() {
  Action action = NextAction();
  while (!std::holds_alternative<std::monostate>(action)) {
    if (auto* const end = std::get_if<CallEnd>(&action)) {
      call_->Finish(std::move(*end));
      finished_ = true;
      return;
    }
    Action next = NextAction();
    if (auto* const message = std::get_if<BytePieces>(&action)) {
      if (auto* const end = std::get_if<CallEnd>(&next)) {
        call_->SendAndFinish(std::move(*message), std::move(*end));
        finished_ = true;
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
