// The daemon's metrics: Triton's names, so that existing dashboards and autoscalers work, and histograms of
// our own. The rest of the server reports events; Exposition() renders the metrics for a scraper.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/request.h"
#include "server/core/shed_reason.h"
#include "server/core/trace_id.h"
#include "server/metrics/cache_metrics.h"
#include "server/metrics/capture_metrics.h"
#include "server/metrics/decode_metrics.h"
#include "server/metrics/drift_metrics.h"
#include "server/metrics/exposition_format.h"
#include "server/metrics/front_metrics.h"
#include "server/metrics/gpu_memory_use.h"
#include "server/metrics/load_meter.h"
#include "server/metrics/model_usage.h"
#include "server/metrics/shadow_metrics.h"
#include "server/metrics/trace_metrics.h"

namespace saccade::server {

struct Families;
// server/metrics/exposition.h
struct Scraped;

// A request that has ended, successfully or not.
struct RequestRecord {
  // "grpc", "oip" or "http". Other values are counted as "other", so that clients cannot create series.
  std::string_view protocol;
  absl::StatusCode code = absl::StatusCode::kOk;
  // True if the request took part in a forward pass. Distinguishes a model's failure from a rejection, and a
  // computed answer from a cached one.
  bool computed = false;
  // Pictures in the request.
  int64_t pictures = 0;
  Timings timings;
  absl::Time ended;
  // Sizes of the decoded items; empty for tensors.
  std::vector<SentItem> sizes;
  // The call's span if it is sampled; used as an exemplar.
  SampledSpan sampled = {};
};

// The series of one version of a model, looked up once, so that the hot path needs no look-up by label. They
// are removed from the exposition when the last handle of that version is destroyed. Thread-safe. Must not
// outlive its Metrics.
class ModelMetrics {
 public:
  ~ModelMetrics();

  void RecordRequest(const RequestRecord& record);
  // Records one forward pass over `size` pictures.
  void RecordBatch(int64_t size, absl::Duration took);
  // Records a picture of a pass, whose bucket was padding to this share, 0 to 1.
  void RecordPadding(double share);
  // Records a batch for which memory was insufficient.
  void RecordNoMemory();
  // Number of accepted requests that wait for a forward pass.
  void SetPending(int64_t requests);
  void SetInstances(int64_t instances);
  // Instances that take no work because their passes kept failing.
  void SetInstancesSetAside(int64_t instances);
  // Instances whose GPU has failed.
  void SetInstancesLost(int64_t instances);
  // Counts a batch that failed on an instance and is tried on another.
  void RecordRetry();
  // Time of one instance that newly arrived requests need.
  void AddDemand(absl::Duration time);
  void SetReady(bool ready);
  void SetLoadDuration(absl::Duration duration);
  // The name of the precision in which the model is computed. Called at most once.
  void SetPrecision(std::string_view precision);

  // What was recorded so far through all handles of this version.
  ModelUsage Usage() const;

 private:
  friend class Metrics;
  struct Series;
  ModelMetrics(Families* families, std::string_view model, int64_t version, std::string_view task);

  std::unique_ptr<Series> series_;
};

// Thread-safe.
class Metrics {
 public:
  // `daemon_version` is the version label of saccade_build_info. `latency_buckets` are the upper bounds, in
  // seconds and ascending, of the buckets of requests' and stages' times; empty takes the default ones.
  explicit Metrics(std::string_view daemon_version, const std::vector<double>& latency_buckets = {});
  ~Metrics();

  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Only for models of the repository: names from clients must not be passed. `version` is the actual
  // version, never 0.
  std::unique_ptr<ModelMetrics> ForModel(std::string_view model, int64_t version, std::string_view task);

  // Only for models whose answers are cached; otherwise like ForModel().
  std::unique_ptr<CacheMetrics> ForCacheOf(std::string_view model, int64_t version);

  // Only for models whose drift is watched; otherwise like ForModel().
  std::unique_ptr<DriftMetrics> ForDriftOf(std::string_view model, int64_t version,
                                           const std::vector<std::string>& features);

  // Only for models with a shadow version; otherwise like ForModel(). `gated`: a rule decides about promoting
  // it.
  std::unique_ptr<ShadowMetrics> ForShadowOf(std::string_view model, int64_t version, int64_t shadow,
                                             bool gated = false);

  // The series are created by the first call.
  std::unique_ptr<TraceMetrics> ForTraces();
  std::unique_ptr<CaptureMetrics> ForCapture();

  // `reasons` and `ports` are the values of the labels `reason` and `port`.
  std::unique_ptr<FrontMetrics> ForFront(const std::vector<std::string_view>& reasons,
                                         const std::vector<std::string_view>& ports);

  // `reasons` are the values of the label `reason`.
  std::unique_ptr<DecodeMetrics> ForDecodeWorkers(const std::vector<std::string_view>& reasons);

  // Counts a request that did not name a known model, with empty model, version and task.
  void RecordUnknownModel(std::string_view protocol, absl::StatusCode code);

  void RecordShed(ShedReason reason);

  // Time that newly arrived requests need of all cores or of all GPUs.
  void AddDemand(absl::Duration of_cores, absl::Duration of_gpus);

  // Counts requests that begin (or, negative, end) to wait for a forward pass.
  void AddWaiting(int64_t requests);

  // Updates the averages and gauges of the load. Call it a few times a second, after AddDemand().
  void SampleLoad(absl::Time now);
  // The load when it was last sampled.
  LoadReport load() const;

  // The requests between admission and answer, and what admission holds for them.
  void SetInflight(int64_t requests, int64_t bytes, int64_t decoded_bytes);

  // Models by whether a version of them is served, the memory of the loaded ones, and the requests that wait
  // for a load.
  void SetModels(int64_t served, int64_t not_served, int64_t memory_bytes, int64_t waiting_requests);

  // Counts a load of a version.
  void RecordLoad(bool succeeded);

  // Counts a repeated trial of a model's threads by what came of it.
  enum class TrialResult { kKept, kChanged, kFailed };
  void RecordThreadTrial(TrialResult result);

  // The response cache's size. The series are created by the first call.
  void SetCached(int64_t bytes, int64_t answers);

  // Lines of the log that were not written since the start, by reason. Called by one thread at a time.
  void SetLostLogLines(uint64_t queue_full, uint64_t write_failed);

  // What LibTorch holds of the GPUs' memory. For the scrape hook alone.
  void SetGpuMemoryUse(std::vector<GpuMemoryUse> uses);

  // When the server's TLS certificate expires. The series is created by the first call.
  void SetCertificateExpiry(absl::Time expires);

  // Called at the start of every scrape, on the scraping thread, to set gauges that are computed on demand
  // (SetPending, SetInflight). Pass nullptr before the objects that the hook uses are destroyed; that blocks
  // until a running hook has returned.
  void SetScrapeHook(std::function<void()> hook);

  // Copies all metrics. Reads /proc. Threads that record events wait at most while their own series is
  // copied.
  Scraped Scrape();

  // Scrape() rendered as text.
  std::string Exposition(ExpositionFormat format = ExpositionFormat::kText);

 private:
  struct Impl;

  absl::Mutex scrape_mutex_;
  std::function<void()> hook_ ABSL_GUARDED_BY(scrape_mutex_);
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
