// What one version of a model has done, for those who ask the daemon instead of scraping it.
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

// Something that happened so often, and took so long in all.
struct Spent {
  uint64_t count = 0;
  absl::Duration time;
};

// The numbers of the metrics nv_inference_*, from the same counters, and what these have no room for.
struct ModelUsage {
  // Whole requests, from arrival to end.
  Spent success;
  Spent fail;
  // Of the answered ones.
  Spent queue;
  Spent input;
  Spent infer;
  Spent output;
  // Pictures in them, and forward passes.
  uint64_t pictures = 0;
  uint64_t passes = 0;
  // When the last request that was computed ended; absl::InfinitePast() if none was.
  absl::Time last = absl::InfinitePast();
  // Forward passes by how many items shared them.
  std::vector<std::pair<int64_t, Spent>> by_batch_size;
  // Answered and failed requests by how long they took: so many took so many seconds or less. The last bound
  // is infinity.
  std::vector<std::pair<double, uint64_t>> request_seconds;
};

// The part of ModelUsage that is no metric. Thread-safe.
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

// One UsageDetails for each version of a model, for as long as somebody has it: as the metrics' series, they
// are shared by an old and a new instance of the same version. Thread-safe.
class UsagePool {
 public:
  std::shared_ptr<UsageDetails> Get(const std::string& model, const std::string& version);

 private:
  absl::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<UsageDetails>> details_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
