#include "server/metrics/cache_metrics.h"

#include <algorithm>
#include <string>

#include "server/metrics/model_metrics.h"

namespace saccade::server {
namespace {

void Add(prometheus::Counter& counter, absl::Duration took) {
  counter.Increment(std::max(0.0, absl::ToDoubleMicroseconds(took)));
}

}  // namespace

struct CacheMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;

  Counter hits;
  Counter misses;
  Counter hit_us;
  Counter miss_us;
  Counter joined;
};

CacheMetrics::CacheMetrics(Families* families, std::string_view model, int64_t version) {
  const prometheus::Labels labels = {{"model", std::string(model)}, {"version", std::to_string(version)}};
  TritonFamilies& triton = families->triton;
  series_ = std::make_unique<Series>(Series{triton.cache_hits.Get(labels), triton.cache_misses.Get(labels),
                                            triton.cache_hit_us.Get(labels), triton.cache_miss_us.Get(labels),
                                            families->ours.cache_joined.Get(labels)});
}

CacheMetrics::~CacheMetrics() = default;

void CacheMetrics::RecordHit(absl::Duration took) {
  Add(*series_->hit_us.get(), took);
  series_->hits->Increment();
}

void CacheMetrics::RecordMiss(absl::Duration took) {
  Add(*series_->miss_us.get(), took);
  series_->misses->Increment();
}

void CacheMetrics::RecordJoined() { series_->joined->Increment(); }

CacheTotals CacheMetrics::totals() const {
  return {.hits = static_cast<int64_t>(series_->hits->Value()),
          .misses = static_cast<int64_t>(series_->misses->Value()),
          .hit_time = absl::Microseconds(series_->hit_us->Value()),
          .miss_time = absl::Microseconds(series_->miss_us->Value())};
}

}  // namespace saccade::server
