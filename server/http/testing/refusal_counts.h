// Counts refusals, for tests.
#pragma once

#include <cstddef>
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
  void CountCut(size_t requests) override {
    absl::MutexLock lock(&mutex_);
    cut_ += requests;
  }
  int Of(Refusal refusal) {
    absl::MutexLock lock(&mutex_);
    return counts_[refusal];
  }
  size_t cut() {
    absl::MutexLock lock(&mutex_);
    return cut_;
  }

 private:
  absl::Mutex mutex_;
  std::map<Refusal, int> counts_ ABSL_GUARDED_BY(mutex_);
  size_t cut_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
