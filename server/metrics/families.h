// All metric families of the daemon, with their names.
#pragma once

#include <prometheus/registry.h>

#include "server/metrics/series.h"

namespace saccade::server {

// The histograms whose buckets have exemplars.
inline constexpr char kRequestSeconds[] = "saccade_request_duration_seconds";
inline constexpr char kShadowDifference[] = "saccade_shadow_difference";
// The default buckets of histograms of seconds.
prometheus::Histogram::BucketBoundaries SecondsBuckets();
prometheus::Histogram::BucketBoundaries DifferenceBuckets();

// Metrics with Triton's names and meanings. They have the labels model and version; failures also have
// reason.
struct TritonFamilies {
  explicit TritonFamilies(prometheus::Registry& registry);

  SeriesPool<prometheus::Counter> success;
  SeriesPool<prometheus::Counter> failure;
  SeriesPool<prometheus::Counter> pictures;
  SeriesPool<prometheus::Counter> batches;
  SeriesPool<prometheus::Counter> request_us;
  SeriesPool<prometheus::Counter> queue_us;
  SeriesPool<prometheus::Counter> input_us;
  SeriesPool<prometheus::Counter> infer_us;
  SeriesPool<prometheus::Counter> output_us;
  SeriesPool<prometheus::Gauge> pending;
  SeriesPool<prometheus::Gauge> load_seconds;
  // Only for models whose answers are cached.
  SeriesPool<prometheus::Counter> cache_hits;
  SeriesPool<prometheus::Counter> cache_misses;
  SeriesPool<prometheus::Counter> cache_hit_us;
  SeriesPool<prometheus::Counter> cache_miss_us;
};

struct SaccadeFamilies {
  // `seconds` are the buckets of kRequestSeconds and of the stages' histogram.
  SaccadeFamilies(prometheus::Registry& registry, const prometheus::Histogram::BucketBoundaries& seconds);

  SeriesPool<prometheus::Counter> requests;
  SeriesPool<prometheus::Histogram> request_seconds;
  SeriesPool<prometheus::Histogram> stage_seconds;
  SeriesPool<prometheus::Gauge> queue;
  SeriesPool<prometheus::Histogram> batch_size;
  SeriesPool<prometheus::Counter> no_memory;
  SeriesPool<prometheus::Histogram> padding;
  SeriesPool<prometheus::Histogram> pixels;
  SeriesPool<prometheus::Gauge> ready;
  SeriesPool<prometheus::Gauge> load_seconds;
  SeriesPool<prometheus::Gauge> precision;
  SeriesPool<prometheus::Gauge> instances;
  SeriesPool<prometheus::Gauge> set_aside;
  SeriesPool<prometheus::Gauge> lost;
  SeriesPool<prometheus::Counter> retries;
  SeriesPool<prometheus::Counter> model_demand;
  SeriesPool<prometheus::Counter> demand;
  SeriesPool<prometheus::Counter> shed;
  SeriesPool<prometheus::Gauge> utilization;
  SeriesPool<prometheus::Gauge> overload_ratio;
  SeriesPool<prometheus::Gauge> waiting;
  SeriesPool<prometheus::Gauge> inflight_requests;
  SeriesPool<prometheus::Gauge> inflight_bytes;
  SeriesPool<prometheus::Gauge> inflight_decoded_bytes;
  SeriesPool<prometheus::Gauge> models;
  SeriesPool<prometheus::Gauge> model_memory;
  SeriesPool<prometheus::Gauge> load_waiting;
  SeriesPool<prometheus::Counter> loads;
  SeriesPool<prometheus::Counter> thread_trials;
  // Only for models whose answers are cached.
  SeriesPool<prometheus::Counter> cache_joined;
  // Only for models whose drift is watched.
  SeriesPool<prometheus::Gauge> drift;
  SeriesPool<prometheus::Counter> drift_items;
  SeriesPool<prometheus::Counter> drift_repeated;
  // Only for models with a shadow version.
  SeriesPool<prometheus::Counter> shadow_compared;
  SeriesPool<prometheus::Counter> shadow_agreed;
  SeriesPool<prometheus::Counter> shadow_equal;
  SeriesPool<prometheus::Counter> shadow_failed;
  SeriesPool<prometheus::Counter> shadow_timed_passes;
  SeriesPool<prometheus::Counter> shadow_dropped;
  SeriesPool<prometheus::Histogram> shadow_difference;
  SeriesPool<prometheus::Gauge> shadow_promotion;
  SeriesPool<prometheus::Gauge> cache_bytes;
  SeriesPool<prometheus::Gauge> cache_answers;
  SeriesPool<prometheus::Gauge> certificate_expiry;
  SeriesPool<prometheus::Counter> spans_exported;
  SeriesPool<prometheus::Counter> spans_dropped;
  // Only if calls are captured.
  SeriesPool<prometheus::Counter> captured;
  SeriesPool<prometheus::Counter> captured_bytes;
  SeriesPool<prometheus::Gauge> capture_bytes;
  SeriesPool<prometheus::Counter> capture_dropped;
  SeriesPool<prometheus::Counter> capture_events;
  SeriesPool<prometheus::Counter> capture_events_dropped;
  SeriesPool<prometheus::Counter> front_refusals;
  SeriesPool<prometheus::Gauge> front_connections;
  SeriesPool<prometheus::Gauge> front_open_requests;
  SeriesPool<prometheus::Counter> log_lines_dropped;
  SeriesPool<prometheus::Gauge> decode_workers;
  SeriesPool<prometheus::Counter> decode_worker_starts;
  SeriesPool<prometheus::Counter> decode_worker_ends;
  SeriesPool<prometheus::Gauge> build_info;
};

}  // namespace saccade::server
