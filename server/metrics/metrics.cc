#include "server/metrics/metrics.h"

#include <prometheus/registry.h>

#include <optional>
#include <utility>

#include "server/metrics/drop_empty_histograms.h"
#include "server/metrics/exposition.h"
#include "server/metrics/gpus.h"
#include "server/metrics/machine.h"
#include "server/metrics/model_metrics.h"

namespace saccade::server {
namespace {

using Counter = Series<prometheus::Counter>;
using Gauge = Series<prometheus::Gauge>;

// Whether more capacity would have avoided the rejection.
bool IsOverload(ShedReason reason) {
  switch (reason) {
    case ShedReason::kRequests:
    case ShedReason::kBytes:
    case ShedReason::kDecodedBytes:
    case ShedReason::kQueueFull:
    case ShedReason::kDeadline:
    case ShedReason::kModelBound:
    case ShedReason::kPredictedLate:
      return true;
    case ShedReason::kCancelled:
    case ShedReason::kDraining:
    case ShedReason::kClientRate:
    case ShedReason::kClientRequests:
    case ShedReason::kClientBytes:
    case ShedReason::kClientDecodedBytes:
      return false;
  }
  return false;
}

}  // namespace

struct Metrics::Impl {
  Impl(std::string_view daemon_version, const std::vector<double>& seconds)
      : machine(registry),
        gpus(registry, Nvml::Open()),
        families(registry, seconds),
        unknown_model(&families.ours.requests, {{"model", ""}, {"version", ""}, {"task", ""}}),
        demand_of_cores(families.ours.demand.Get({{"devices", "cores"}})),
        demand_of_gpus(families.ours.demand.Get({{"devices", "gpus"}})),
        models_served(families.ours.models.Get({{"state", "served"}})),
        models_not_served(families.ours.models.Get({{"state", "not_served"}})),
        model_memory(families.ours.model_memory.Get({})),
        load_waiting(families.ours.load_waiting.Get({})),
        loads_ok(families.ours.loads.Get({{"result", "ok"}})),
        loads_failed(families.ours.loads.Get({{"result", "failed"}})),
        thread_trials_kept(families.ours.thread_trials.Get({{"result", "kept"}})),
        thread_trials_changed(families.ours.thread_trials.Get({{"result", "changed"}})),
        thread_trials_failed(families.ours.thread_trials.Get({{"result", "failed"}})),
        utilization(families.ours.utilization.Get({})),
        overload_ratio(families.ours.overload_ratio.Get({})),
        waiting(families.ours.waiting.Get({})),
        inflight_requests(families.ours.inflight_requests.Get({})),
        inflight_bytes(families.ours.inflight_bytes.Get({})),
        inflight_decoded_bytes(families.ours.inflight_decoded_bytes.Get({})),
        log_queue_full(families.ours.log_lines_dropped.Get({{"reason", "queue_full"}})),
        log_write_failed(families.ours.log_lines_dropped.Get({{"reason", "write_failed"}})),
        build_info(families.ours.build_info.Get({{"version", std::string(daemon_version)}})) {
    build_info->Set(1);
    for (int i = 0; i < kShedReasons; ++i) {
      const std::string reason(ShedReasonName(static_cast<ShedReason>(i)));
      shed.push_back(families.ours.shed.Get({{"reason", reason}}));
    }
  }

  prometheus::Registry registry;
  MachineMetrics machine;
  GpuMetrics gpus;
  Families families;
  RequestCounters unknown_model;
  std::vector<Counter> shed;  // by ShedReason
  Counter demand_of_cores;
  Counter demand_of_gpus;
  Gauge models_served;
  Gauge models_not_served;
  Gauge model_memory;
  Gauge load_waiting;
  Counter loads_ok;
  Counter loads_failed;
  Counter thread_trials_kept;
  Counter thread_trials_changed;
  Counter thread_trials_failed;
  Gauge utilization;
  Gauge overload_ratio;
  Gauge waiting;
  Gauge inflight_requests;
  Gauge inflight_bytes;
  Gauge inflight_decoded_bytes;
  Counter log_queue_full;
  Counter log_write_failed;
  Gauge build_info;
  mutable absl::Mutex load_mutex;
  LoadMeter load ABSL_GUARDED_BY(load_mutex);
  absl::Mutex cache_mutex;
  std::optional<Gauge> cache_bytes ABSL_GUARDED_BY(cache_mutex);
  std::optional<Gauge> cache_answers ABSL_GUARDED_BY(cache_mutex);
  absl::Mutex certificate_mutex;
  std::optional<Gauge> certificate_expiry ABSL_GUARDED_BY(certificate_mutex);
};

Metrics::Metrics(std::string_view daemon_version, const std::vector<double>& latency_buckets)
    : impl_(std::make_unique<Impl>(daemon_version,
                                   latency_buckets.empty() ? SecondsBuckets() : latency_buckets)) {}

Metrics::~Metrics() = default;

std::unique_ptr<ModelMetrics> Metrics::ForModel(std::string_view model, int64_t version,
                                                std::string_view task) {
  return std::unique_ptr<ModelMetrics>(new ModelMetrics(&impl_->families, model, version, task));
}

std::unique_ptr<CacheMetrics> Metrics::ForCacheOf(std::string_view model, int64_t version) {
  return std::unique_ptr<CacheMetrics>(new CacheMetrics(&impl_->families, model, version));
}

std::unique_ptr<DriftMetrics> Metrics::ForDriftOf(std::string_view model, int64_t version,
                                                  const std::vector<std::string>& features) {
  return std::unique_ptr<DriftMetrics>(new DriftMetrics(&impl_->families, model, version, features));
}

std::unique_ptr<ShadowMetrics> Metrics::ForShadowOf(std::string_view model, int64_t version, int64_t shadow,
                                                    bool gated) {
  return std::unique_ptr<ShadowMetrics>(new ShadowMetrics(&impl_->families, model, version, shadow, gated));
}

std::unique_ptr<CaptureMetrics> Metrics::ForCapture() {
  return std::unique_ptr<CaptureMetrics>(new CaptureMetrics(&impl_->families));
}

std::unique_ptr<TraceMetrics> Metrics::ForTraces() {
  return std::unique_ptr<TraceMetrics>(new TraceMetrics(&impl_->families));
}

std::unique_ptr<FrontMetrics> Metrics::ForFront(const std::vector<std::string_view>& reasons,
                                                const std::vector<std::string_view>& ports) {
  return std::unique_ptr<FrontMetrics>(new FrontMetrics(&impl_->families, reasons, ports));
}

std::unique_ptr<DecodeMetrics> Metrics::ForDecodeWorkers(const std::vector<std::string_view>& reasons) {
  return std::unique_ptr<DecodeMetrics>(new DecodeMetrics(&impl_->families, reasons));
}

void Metrics::SetModels(int64_t served, int64_t not_served, int64_t memory_bytes, int64_t waiting_requests) {
  impl_->models_served->Set(static_cast<double>(served));
  impl_->models_not_served->Set(static_cast<double>(not_served));
  impl_->model_memory->Set(static_cast<double>(memory_bytes));
  impl_->load_waiting->Set(static_cast<double>(waiting_requests));
}

void Metrics::RecordLoad(bool succeeded) { (succeeded ? impl_->loads_ok : impl_->loads_failed)->Increment(); }

void Metrics::RecordThreadTrial(TrialResult result) {
  switch (result) {
    case TrialResult::kKept:
      return impl_->thread_trials_kept->Increment();
    case TrialResult::kChanged:
      return impl_->thread_trials_changed->Increment();
    case TrialResult::kFailed:
      break;
  }
  impl_->thread_trials_failed->Increment();
}

void Metrics::SetCached(int64_t bytes, int64_t answers) {
  absl::MutexLock lock(&impl_->cache_mutex);
  if (!impl_->cache_bytes) {
    impl_->cache_bytes.emplace(impl_->families.ours.cache_bytes.Get({}));
    impl_->cache_answers.emplace(impl_->families.ours.cache_answers.Get({}));
  }
  (*impl_->cache_bytes)->Set(static_cast<double>(bytes));
  (*impl_->cache_answers)->Set(static_cast<double>(answers));
}

void Metrics::SetLostLogLines(uint64_t queue_full, uint64_t write_failed) {
  const auto raise = [](Counter& counter, uint64_t to) {
    counter->Increment(static_cast<double>(to) - counter->Value());
  };
  raise(impl_->log_queue_full, queue_full);
  raise(impl_->log_write_failed, write_failed);
}

void Metrics::SetGpuMemoryUse(std::vector<GpuMemoryUse> uses) { impl_->gpus.SetMemoryUse(std::move(uses)); }

void Metrics::SetCertificateExpiry(absl::Time expires) {
  absl::MutexLock lock(&impl_->certificate_mutex);
  std::optional<Gauge>& gauge = impl_->certificate_expiry;
  if (!gauge) gauge.emplace(impl_->families.ours.certificate_expiry.Get({}));
  (*gauge)->Set(absl::ToDoubleSeconds(expires - absl::UnixEpoch()));
}

void Metrics::RecordUnknownModel(std::string_view protocol, absl::StatusCode code) {
  impl_->unknown_model.Increment(protocol, code);
  ++impl_->families.load.requests;
}

void Metrics::RecordShed(ShedReason reason) {
  impl_->shed[static_cast<size_t>(reason)]->Increment();
  if (IsOverload(reason)) ++impl_->families.load.overload;
}

void Metrics::AddDemand(absl::Duration of_cores, absl::Duration of_gpus) {
  impl_->demand_of_cores->Increment(absl::ToDoubleSeconds(of_cores));
  impl_->demand_of_gpus->Increment(absl::ToDoubleSeconds(of_gpus));
  impl_->families.load.demand_of_cores += absl::ToInt64Nanoseconds(of_cores);
  impl_->families.load.demand_of_gpus += absl::ToInt64Nanoseconds(of_gpus);
}

void Metrics::AddWaiting(int64_t requests) { impl_->families.load.waiting += requests; }

void Metrics::SampleLoad(absl::Time now) {
  absl::MutexLock lock(&impl_->load_mutex);
  impl_->load.Sample(now, impl_->families.load);
  const LoadReport& report = impl_->load.report();
  impl_->utilization->Set(report.utilization);
  impl_->overload_ratio->Set(report.overload_ratio);
  impl_->waiting->Set(static_cast<double>(report.waiting));
}

LoadReport Metrics::load() const {
  absl::MutexLock lock(&impl_->load_mutex);
  return impl_->load.report();
}

void Metrics::SetInflight(int64_t requests, int64_t bytes, int64_t decoded_bytes) {
  impl_->inflight_requests->Set(static_cast<double>(requests));
  impl_->inflight_bytes->Set(static_cast<double>(bytes));
  impl_->inflight_decoded_bytes->Set(static_cast<double>(decoded_bytes));
}

void Metrics::SetScrapeHook(std::function<void()> hook) {
  absl::MutexLock lock(&scrape_mutex_);
  hook_ = std::move(hook);
}

Scraped Metrics::Scrape() {
  // One scrape at a time, because some of the machine's metrics are differences between scrapes.
  absl::MutexLock lock(&scrape_mutex_);
  if (hook_) hook_();
  impl_->machine.Update();
  impl_->gpus.Update();
  Scraped scraped;
  // Collected before the buckets, so that each bucket counts the request of its exemplar.
  scraped.exemplars.emplace(kRequestSeconds, impl_->families.request_exemplars.Latest());
  scraped.exemplars.emplace(kShadowDifference, impl_->families.shadow_exemplars.Latest());
  scraped.families = impl_->registry.Collect();
  DropEmptyHistograms(scraped.families);
  return scraped;
}

std::string Metrics::Exposition(ExpositionFormat format) { return Render(Scrape(), format); }

}  // namespace saccade::server
