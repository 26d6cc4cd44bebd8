// Compares what a model is sent and answers now with what it was sent and answered before.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/drift/distribution.h"

namespace saccade::server {

// What was seen of a model.
struct DriftReport {
  int64_t window = 0;
  // Items that were looked at, and those of them that equal one of the last 4,096.
  int64_t seen = 0;
  int64_t repeated = 0;
  bool reference_from_file = false;
  // Whether the reference has all its items.
  bool reference_complete = false;
  Distribution reference = {};
  Distribution recent = {};
  // By name, one of DriftFeatures(); empty until the reference is complete and half a window was seen since.
  std::vector<std::pair<std::string, double>> drift = {};
};

// The features of a report: NameOf() each Feature, and "class".
std::vector<std::string> DriftFeatures();

// Thread-safe.
class DriftWatch {
 public:
  // Looks at no more than this many requests in a second, so that watching costs next to nothing.
  static constexpr int kLooksPerSecond = 20;

  // Compares the last `window` items, or a little fewer, with `reference`. Without one, the first `window`
  // items are the reference. REQUIRES: window is at least 2.
  DriftWatch(int64_t window, std::optional<Distribution> reference);

  // Whether a request that is answered now should be looked at.
  bool Wants(absl::Time now);
  void Add(const DriftSample& sample) ABSL_LOCKS_EXCLUDED(mutex_);
  DriftReport Report() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kRemembered = 4096;

  bool IsRepeated(uint64_t fingerprint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t window_;
  const bool from_file_;
  // Nanoseconds since the epoch.
  std::atomic<int64_t> next_look_{0};

  mutable absl::Mutex mutex_;
  int64_t seen_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t repeated_ ABSL_GUARDED_BY(mutex_) = 0;
  bool complete_ ABSL_GUARDED_BY(mutex_);
  Distribution reference_ ABSL_GUARDED_BY(mutex_);
  // Half a window each: the one that is being filled, and the one before it.
  Distribution filling_ ABSL_GUARDED_BY(mutex_);
  Distribution filled_ ABSL_GUARDED_BY(mutex_);
  // Fingerprints, each at the place that its own value gives.
  std::vector<uint64_t> remembered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
