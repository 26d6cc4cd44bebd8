#include "server/protocols/slow_readers.h"

#include <utility>
#include <vector>

namespace saccade::server {

SlowReaders::~SlowReaders() {
  for (const auto& [call, by] : sent_by_) grpc_call_unref(call);
}

void SlowReaders::Watch(grpc_call* call) {
  grpc_call_ref(call);
  const absl::Time by = clock_->Now() + max_;
  absl::MutexLock lock(&mutex_);
  sent_by_.emplace(call, by);
}

void SlowReaders::Forget(grpc_call* call) {
  {
    absl::MutexLock lock(&mutex_);
    // Sweep() has taken the call and releases it.
    if (sent_by_.erase(call) == 0) return;
  }
  grpc_call_unref(call);
}

void SlowReaders::Sweep() {
  const absl::Time now = clock_->Now();
  std::vector<grpc_call*> late;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [call, by] : sent_by_) {
      if (by <= now) late.push_back(call);
    }
    for (grpc_call* call : late) sent_by_.erase(call);
  }
  for (grpc_call* call : late) {
    grpc_call_cancel(call, nullptr);
    grpc_call_unref(call);
  }
}

}  // namespace saccade::server
