// Usage of one version of a model, for clients that query the daemon instead of scraping it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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
  Spent fail;
  // Stages of the answered requests.
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
  // Answered and failed requests by duration: (upper bound in seconds, cumulative count). The last bound is
  // infinity.
  std::vector<std::pair<double, uint64_t>> request_seconds;
};

// The part of ModelUsage that is not a metric. Thread-safe.
class UsageDetails {
 public:
  void AddFailure(absl::Duration took);
  void AddComputed(absl::Time ended);
  void AddPass(int64_t size, absl::Duration took);

  // Sets fail.time, last and by_batch_size.
  void Fill(ModelUsage& usage) const;

 private:
  mutable absl::Mutex mutex_;
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
