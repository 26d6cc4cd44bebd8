// Counts what the response cache does for one version of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/time/time.h"

namespace saccade::server {

struct Families;

struct CacheTotals {
  int64_t hits = 0;
  int64_t misses = 0;
  // The time of lookups that found an answer; the time of those that did not, and of storing the computed
  // answer.
  absl::Duration hit_time = absl::ZeroDuration();
  absl::Duration miss_time = absl::ZeroDuration();
};

// Like ModelMetrics. Created by Metrics::ForCacheOf(). Thread-safe.
class CacheMetrics {
 public:
  ~CacheMetrics();

  void RecordHit(absl::Duration took);
  void RecordMiss(absl::Duration took);
  // Counts a hit whose answer was computed for an equal request that arrived earlier.
  void RecordJoined();
  // The numbers of the statistics extension.
  CacheTotals totals() const;

 private:
  friend class Metrics;
  struct Series;
  CacheMetrics(Families* families, std::string_view model, int64_t version);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
