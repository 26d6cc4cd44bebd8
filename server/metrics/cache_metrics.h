// What the response cache did for one version of a model.
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
  // Finding an answer; not finding one, and keeping the one that was computed instead.
  absl::Duration hit_time = absl::ZeroDuration();
  absl::Duration miss_time = absl::ZeroDuration();
};

// As ModelMetrics; made by Metrics::ForCacheOf. Thread-safe.
class CacheMetrics {
 public:
  ~CacheMetrics();

  void RecordHit(absl::Duration took);
  void RecordMiss(absl::Duration took);
  // As the statistics extension has them.
  CacheTotals totals() const;

 private:
  friend class Metrics;
  struct Series;
  CacheMetrics(Families* families, std::string_view model, int64_t version);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
