#include "server/metrics/model_metrics.h"

#include <algorithm>
#include <utility>

namespace saccade::server {
namespace {

constexpr std::array<const char*, 4> kStageNames = {"decode", "queue", "infer", "encode"};

prometheus::Labels With(prometheus::Labels labels, const char* name, std::string value) {
  labels[name] = std::move(value);
  return labels;
}

template <typename T, typename Names>
std::vector<Series<T>> GetAll(SeriesPool<T>& pool, const prometheus::Labels& labels, const char* label,
                              const Names& names) {
  std::vector<Series<T>> all;
  all.reserve(names.size());
  for (const auto& name : names) all.push_back(pool.Get(With(labels, label, std::string(name))));
  return all;
}

// Times read on different threads may yield negative differences; counters and histograms must not decrease.
double Seconds(absl::Duration duration) { return std::max(0.0, absl::ToDoubleSeconds(duration)); }
double Microseconds(absl::Duration duration) { return std::max(0.0, absl::ToDoubleMicroseconds(duration)); }

// Whether a request failed by the server's fault: not by its own, and not because of overload.
bool IsFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kUnavailable;
}

}  // namespace

RequestCounters::RequestCounters(SeriesPool<prometheus::Counter>* pool, prometheus::Labels labels)
    : pool_(pool), labels_(std::move(labels)) {}

void RequestCounters::Increment(std::string_view protocol, absl::StatusCode code) {
  // Unknown values are counted as "other" and UNKNOWN, so that neither protocols nor codes create unlimited
  // series.
  const auto known = std::find(kProtocols.begin(), kProtocols.end() - 1, protocol);
  size_t number = static_cast<size_t>(code);
  if (number >= kCodes) number = static_cast<size_t>(absl::StatusCode::kUnknown);
  auto& slot = counters_[static_cast<size_t>(known - kProtocols.begin())][number];
  prometheus::Counter* counter = slot.load(std::memory_order_acquire);
  if (counter == nullptr) {
    auto labels = With(labels_, "protocol", std::string(*known));
    auto series =
        pool_->Get(With(labels, "code", absl::StatusCodeToString(static_cast<absl::StatusCode>(number))));
    counter = series.get();
    absl::MutexLock lock(&mutex_);
    owned_.push_back(std::move(series));
    slot.store(counter, std::memory_order_release);
  }
  counter->Increment();
}

ModelMetrics::Series::Series(Families* families, const prometheus::Labels& model,
                             const prometheus::Labels& with_task)
    : precisions(&families->ours.precision),
      load(&families->load),
      labels(model),
      usage(families->usage.Get(model.at("model"), model.at("version"))),
      request_exemplars(families->request_exemplars.Get(with_task)),
      success(families->triton.success.Get(model)),
      failure(GetAll(families->triton.failure, model, "reason", kFailureReasonNames)),
      pictures(families->triton.pictures.Get(model)),
      batches(families->triton.batches.Get(model)),
      request_us(families->triton.request_us.Get(model)),
      queue_us(families->triton.queue_us.Get(model)),
      input_us(families->triton.input_us.Get(model)),
      infer_us(families->triton.infer_us.Get(model)),
      output_us(families->triton.output_us.Get(model)),
      pending(families->triton.pending.Get(model)),
      load_secs(families->triton.load_seconds.Get(model)),
      requests(&families->ours.requests, with_task),
      request_seconds(families->ours.request_seconds.Get(with_task)),
      stage_seconds(GetAll(families->ours.stage_seconds, with_task, "stage", kStageNames)),
      queue(families->ours.queue.Get(model)),
      batch_size(families->ours.batch_size.Get(model)),
      no_memory(families->ours.no_memory.Get(model)),
      padding(families->ours.padding.Get(model)),
      pixels(families->ours.pixels.Get(model)),
      instances(families->ours.instances.Get(model)),
      set_aside(families->ours.set_aside.Get(model)),
      lost(families->ours.lost.Get(model)),
      retries(families->ours.retries.Get(model)),
      demand(families->ours.model_demand.Get(model)),
      ready(families->ours.ready.Get(model)),
      load_seconds(families->ours.load_seconds.Get(model)) {}

ModelMetrics::ModelMetrics(Families* families, std::string_view model, int64_t version,
                           std::string_view task) {
  const prometheus::Labels labels = {{"model", std::string(model)}, {"version", std::to_string(version)}};
  series_ = std::make_unique<Series>(families, labels, With(labels, "task", std::string(task)));
}

ModelMetrics::~ModelMetrics() = default;

void ModelMetrics::RecordRequest(const RequestRecord& record) {
  Series& s = *series_;
  const bool ok = record.code == absl::StatusCode::kOk;
  s.requests.Increment(record.protocol, record.code);
  ++s.load->requests;
  if (IsFault(record.code)) ++s.load->failures;
  s.request_seconds->Observe(Seconds(record.timings.total));
  if (record.sampled.id != 0) {
    s.request_exemplars->Keep({record.sampled, Seconds(record.timings.total), record.ended});
  }
  for (const SentItem& size : record.sizes) {
    s.pixels->Observe(static_cast<double>(size.width) * size.height);
  }
  const auto stage = [&](Stage which, absl::Duration duration, bool passed) {
    if (passed || duration > absl::ZeroDuration()) {
      s.stage_seconds[static_cast<size_t>(which)]->Observe(Seconds(duration));
    }
  };
  const bool staged = ok && record.computed;
  stage(Stage::kDecode, record.timings.decode, staged && !record.sizes.empty());
  stage(Stage::kQueue, record.timings.queue, staged);
  stage(Stage::kInfer, record.timings.infer, staged);
  stage(Stage::kEncode, record.timings.encode, staged);
  if (record.computed) s.usage->AddComputed(record.ended, ok);
  // Like Triton, a request that was wrong is no failure of the model, even if only the pass could tell.
  if (record.code == absl::StatusCode::kInvalidArgument) return;
  if (!ok) {
    s.usage->AddFailure(record.timings.total);
    s.failure[static_cast<size_t>(FailureReasonOf(record.code, record.computed))]->Increment();
    return;
  }
  s.success->Increment();
  s.usage->AddAnswered(record.timings.total);
  s.pictures->Increment(static_cast<double>(record.pictures));
  s.request_us->Increment(Microseconds(record.timings.total));
  s.queue_us->Increment(Microseconds(record.timings.queue));
  s.input_us->Increment(Microseconds(record.timings.decode));
  s.infer_us->Increment(Microseconds(record.timings.infer));
  s.output_us->Increment(Microseconds(record.timings.encode));
}

void ModelMetrics::RecordBatch(int64_t size, absl::Duration took) {
  series_->usage->AddPass(size, took);
  series_->batches->Increment();
  series_->batch_size->Observe(static_cast<double>(size));
}

void ModelMetrics::RecordNoMemory() { series_->no_memory->Increment(); }
void ModelMetrics::RecordPadding(double share) { series_->padding->Observe(share); }

void ModelMetrics::SetPending(int64_t requests) {
  series_->pending->Set(static_cast<double>(requests));
  series_->queue->Set(static_cast<double>(requests));
}

void ModelMetrics::SetInstances(int64_t instances) {
  series_->instances->Set(static_cast<double>(instances));
}

void ModelMetrics::SetInstancesSetAside(int64_t instances) {
  series_->set_aside->Set(static_cast<double>(instances));
}

void ModelMetrics::SetInstancesLost(int64_t instances) { series_->lost->Set(static_cast<double>(instances)); }

void ModelMetrics::RecordRetry() { series_->retries->Increment(); }

void ModelMetrics::AddDemand(absl::Duration time) { series_->demand->Increment(Seconds(time)); }

void ModelMetrics::SetReady(bool ready) { series_->ready->Set(ready ? 1 : 0); }

void ModelMetrics::SetLoadDuration(absl::Duration duration) {
  series_->load_secs->Set(Seconds(duration));
  series_->load_seconds->Set(Seconds(duration));
}

void ModelMetrics::SetPrecision(std::string_view precision) {
  Series& s = *series_;
  s.precision.emplace(s.precisions->Get(With(s.labels, "precision", std::string(precision))));
  (*s.precision)->Set(1);
}

ModelUsage ModelMetrics::Usage() const {
  const Series& s = *series_;
  const auto count = [](const auto& counter) { return static_cast<uint64_t>(counter->Value()); };
  const auto time = [](const auto& microseconds) { return absl::Microseconds(microseconds->Value()); };
  ModelUsage usage;
  usage.success = {.count = count(s.success), .time = time(s.request_us)};
  for (size_t i = 0; i < s.failure.size(); ++i) {
    const uint64_t failures = count(s.failure[i]);
    usage.fail.count += failures;
    usage.fail_by_reason.emplace_back(kFailureReasonNames[i], failures);
  }
  usage.queue.time = time(s.queue_us);
  usage.input.time = time(s.input_us);
  usage.infer.time = time(s.infer_us);
  usage.output.time = time(s.output_us);
  usage.pictures = count(s.pictures);
  usage.passes = count(s.batches);
  s.usage->Fill(usage);
  return usage;
}

}  // namespace saccade::server
