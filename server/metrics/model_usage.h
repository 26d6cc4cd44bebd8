// Usage of one version of a model, for clients that query the daemon instead of scraping it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace saccade::server {

// How often something happened, and how long it took in total.
struct Spent {
  uint64_t count = 0;
  absl::Duration time;
};

// The numbers of the nv_inference_* metrics, from the same counters, and details that those cannot represent.
struct ModelUsage {
  // Whole requests, from arrival to end.
  Spent success;
  // Without requests that were wrong and therefore not computed.
  Spent fail;
  // Stages of the answered requests that were computed, not taken from the cache.
  Spent queue;
  Spent input;
  Spent infer;
  Spent output;
  // Pictures of the answered requests, and forward passes.
  uint64_t pictures = 0;
  uint64_t passes = 0;
  // When the last request that was computed ended; absl::InfinitePast() if none was.
  absl::Time last = absl::InfinitePast();
  // Forward passes by batch size.
  std::vector<std::pair<int64_t, Spent>> by_batch_size;
  // Failed requests by Triton's reasons.
  std::vector<std::pair<std::string_view, uint64_t>> fail_by_reason;
  // Answered requests by duration: (upper bound in seconds, cumulative count). The last bound is infinity.
  // Rejected requests are not counted, because they end at once and would hide how long the others take.
  std::vector<std::pair<double, uint64_t>> answered_seconds;
};

// Counts durations in buckets whose bounds grow by a fifth, from 0.1 ms to 105 s. They are finer than those
// of the metrics, so that quantiles of a few seconds are close to the truth. Thread-safe and lock-free.
class DurationHistogram {
 public:
  void Add(absl::Duration took);
  std::vector<std::pair<double, uint64_t>> Cumulative() const;

 private:
  // Four buckets for each doubling.
  static constexpr int kPerDoubling = 4;
  static constexpr size_t kBounds = 20 * kPerDoubling + 1;
  static constexpr double kMinSeconds = 0.0001;

  std::array<std::atomic<uint64_t>, kBounds + 1> counts_{};
};

// The part of ModelUsage that is not a metric. Thread-safe.
class UsageDetails {
 public:
  void AddAnswered(absl::Duration took) { answered_.Add(took); }
  void AddFailure(absl::Duration took);
  void AddComputed(absl::Time ended, bool answered);
  void AddPass(int64_t size, absl::Duration took);

  // Sets fail.time, last, by_batch_size, answered_seconds and the counts of the stages.
  void Fill(ModelUsage& usage) const;

 private:
  DurationHistogram answered_;
  mutable absl::Mutex mutex_;
  uint64_t computed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration failed_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<int64_t, Spent> passes_ ABSL_GUARDED_BY(mutex_);
};

// One UsageDetails per version of a model, kept as long as it is in use: like the metrics' series, it is
// shared by an old and a new instance of the same version. Thread-safe.
class UsagePool {
 public:
  std::shared_ptr<UsageDetails> Get(const std::string& model, const std::string& version);

 private:
  absl::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<UsageDetails>> details_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
