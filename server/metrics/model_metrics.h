// The series behind ModelMetrics.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/metrics/exemplars.h"
#include "server/metrics/failure_reason.h"
#include "server/metrics/families.h"
#include "server/metrics/load_meter.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

struct Families {
  Families(prometheus::Registry& registry, const prometheus::Histogram::BucketBoundaries& seconds)
      : triton(registry),
        ours(registry, seconds),
        request_exemplars(seconds),
        shadow_exemplars(DifferenceBuckets()) {}

  TritonFamilies triton;
  SaccadeFamilies ours;
  UsagePool usage;
  LoadCounters load;
  // Exemplars of kRequestSeconds.
  ExemplarPool request_exemplars;
  // Exemplars of kShadowDifference.
  ExemplarPool shadow_exemplars;
};

// saccade_requests_total of one model. Most combinations of protocol and code never occur, so each series is
// created by its first request; later requests need no look-up by label. Thread-safe.
class RequestCounters {
 public:
  RequestCounters(SeriesPool<prometheus::Counter>* pool, prometheus::Labels labels);

  void Increment(std::string_view protocol, absl::StatusCode code);

 private:
  static constexpr std::array<std::string_view, 4> kProtocols = {"grpc", "oip", "http", "other"};
  static constexpr size_t kCodes = 17;

  SeriesPool<prometheus::Counter>* const pool_;
  const prometheus::Labels labels_;
  std::array<std::array<std::atomic<prometheus::Counter*>, kCodes>, kProtocols.size()> counters_{};
  absl::Mutex mutex_;
  std::vector<Series<prometheus::Counter>> owned_ ABSL_GUARDED_BY(mutex_);
};

enum class Stage { kDecode, kQueue, kInfer, kEncode };

struct ModelMetrics::Series {
  Series(Families* families, const prometheus::Labels& model, const prometheus::Labels& with_task);

  SeriesPool<prometheus::Gauge>* const precisions;
  LoadCounters* const load;
  const prometheus::Labels labels;
  // Usage that is not a metric.
  const std::shared_ptr<UsageDetails> usage;
  const std::shared_ptr<Exemplars> request_exemplars;

  template <typename T>
  using Share = ::saccade::server::Series<T>;

  Share<prometheus::Counter> success;
  std::vector<Share<prometheus::Counter>> failure;  // by FailureReason
  Share<prometheus::Counter> pictures;
  Share<prometheus::Counter> batches;
  Share<prometheus::Counter> request_us;
  Share<prometheus::Counter> queue_us;
  Share<prometheus::Counter> input_us;
  Share<prometheus::Counter> infer_us;
  Share<prometheus::Counter> output_us;
  Share<prometheus::Gauge> pending;
  Share<prometheus::Gauge> load_secs;

  RequestCounters requests;
  Share<prometheus::Histogram> request_seconds;
  std::vector<Share<prometheus::Histogram>> stage_seconds;  // by Stage
  Share<prometheus::Gauge> queue;
  Share<prometheus::Histogram> batch_size;
  Share<prometheus::Counter> no_memory;
  Share<prometheus::Histogram> padding;
  Share<prometheus::Histogram> pixels;
  Share<prometheus::Gauge> instances;
  Share<prometheus::Gauge> set_aside;
  Share<prometheus::Gauge> lost;
  Share<prometheus::Counter> retries;
  Share<prometheus::Counter> demand;
  Share<prometheus::Gauge> ready;
  Share<prometheus::Gauge> load_seconds;
  // Unset until it is known, and for models that have none.
  std::optional<Share<prometheus::Gauge>> precision;
};

}  // namespace saccade::server
