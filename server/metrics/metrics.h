// What the daemon counts: Triton's names, so that existing dashboards and autoscalers work, and histograms of
// our own. The rooms report events; Exposition renders them for a scraper.
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
#include "server/metrics/exposition_format.h"
#include "server/metrics/model_usage.h"
#include "server/metrics/trace_metrics.h"

namespace saccade::server {

struct Families;
// server/metrics/exposition.h
struct Scraped;

// One request that came to its end, well or badly.
struct RequestRecord {
  // "grpc", "oip", "http"; anything else is counted as "other", so that no client makes series.
  std::string_view protocol;
  absl::StatusCode code = absl::StatusCode::kOk;
  // The request took part in a forward pass: tells a model's failure from a rejection, and an answer of the
  // model from one that was kept.
  bool computed = false;
  // Pictures in the request.
  int64_t pictures = 0;
  Timings timings;
  absl::Time ended;
  // As decoded; empty for tensors.
  std::vector<SentItem> sizes;
  // Of the call, if it is sampled: an example of those that took as long.
  SampledSpan sampled = {};
};

// The series of one version of a model, found once, so that the hot path looks up no label. They leave the
// exposition when the last handle of that version is deleted. Thread-safe. Must not outlive its Metrics.
class ModelMetrics {
 public:
  ~ModelMetrics();

  void RecordRequest(const RequestRecord& record);
  // One forward pass over `size` pictures.
  void RecordBatch(int64_t size, absl::Duration took);
  // A picture in it, of whose bucket so much, 0 to 1, was padding.
  void RecordPadding(double share);
  // A batch that memory did not suffice for.
  void RecordNoMemory();
  // Requests accepted that wait for a forward pass.
  void SetPending(int64_t requests);
  void SetReady(bool ready);
  void SetLoadDuration(absl::Duration duration);

  // What was recorded so far, of every handle of this version.
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
  // `daemon_version` goes to saccade_build_info.
  explicit Metrics(std::string_view daemon_version);
  ~Metrics();

  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // For models of the repository alone: a name that a client sent must not come here. `version` is the real
  // one, never 0.
  std::unique_ptr<ModelMetrics> ForModel(std::string_view model, int64_t version, std::string_view task);

  // For models whose answers are kept; as ForModel.
  std::unique_ptr<CacheMetrics> ForCacheOf(std::string_view model, int64_t version);

  // Their series appear with the first call.
  std::unique_ptr<TraceMetrics> ForTraces();

  // A request that named no model of ours; counted with empty model, version and task.
  void RecordUnknownModel(std::string_view protocol, absl::StatusCode code);

  void RecordShed(ShedReason reason);

  // Requests that are anywhere between admission and answer, and the bytes and pixels admission holds for
  // them.
  void SetInflight(int64_t requests, int64_t bytes, int64_t pixels);

  // What the response cache holds; absent until the first call.
  void SetCached(int64_t bytes, int64_t answers);

  // Of what TLS is spoken with; absent until the first call.
  void SetCertificateExpiry(absl::Time expires);

  // Called at the start of every scrape, by its thread: for gauges that are cheaper to ask for than to
  // keep (SetPending, SetInflight). Pass nullptr before what it looks at goes away; blocks until a running
  // one is done.
  void SetScrapeHook(std::function<void()> hook);

  // What has been counted until now, as a copy that nobody else looks at. Reads /proc. Whoever counts waits
  // for no more than his own series to be copied.
  Scraped Scrape();

  // The same as a scraper reads it.
  std::string Exposition(ExpositionFormat format = ExpositionFormat::kText);

 private:
  struct Impl;

  absl::Mutex scrape_mutex_;
  std::function<void()> hook_ ABSL_GUARDED_BY(scrape_mutex_);
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
