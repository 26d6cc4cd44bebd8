// Counts refusals, for tests.
#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/net/refusal.h"

namespace saccade::server {

// Thread-safe.
class RefusalCounts final : public RefusalCounter {
 public:
  void Count(Refusal refusal) override {
    absl::MutexLock lock(&mutex_);
    ++counts_[refusal];
  }
  int Of(Refusal refusal) {
    absl::MutexLock lock(&mutex_);
    return counts_[refusal];
  }

 private:
  absl::Mutex mutex_;
  std::map<Refusal, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
