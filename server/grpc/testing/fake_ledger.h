// A ledger that counts and refuses as a test says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// Thread-safe.
class FakeLedger final : public ByteLedger {
 public:
  explicit FakeLedger(int64_t max = std::numeric_limits<int64_t>::max()) : max_(max) {}

  absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) override {
    absl::MutexLock lock(&mutex_);
    client_ = std::string(client);
    if (bytes > max_ - charged_)
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", bytes, " bytes"));
    charged_ += bytes;
    peak_ = std::max(peak_, charged_);
    return Issue(this, client, bytes);
  }

  int64_t charged() const {
    absl::MutexLock lock(&mutex_);
    return charged_;
  }
  // The highest charge so far.
  int64_t peak() const {
    absl::MutexLock lock(&mutex_);
    return peak_;
  }
  // The client of the last charge.
  std::string client() const {
    absl::MutexLock lock(&mutex_);
    return client_;
  }

 private:
  void Return(absl::string_view /*client*/, int64_t bytes) override {
    absl::MutexLock lock(&mutex_);
    charged_ -= bytes;
  }

  const int64_t max_;
  mutable absl::Mutex mutex_;
  int64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t peak_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
