#include "server/pipeline/served_model.h"

#include <pthread.h>

#include <exception>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/error.h"
#include "models/registry.h"
#include "server/logging/log.h"
#include "server/pipeline/cores.h"
#include "server/pipeline/forward.h"
#include "server/pipeline/item.h"

namespace saccade::server {

ServedModel::ServedModel(ServedModelOptions options, Device* device, Clock* clock, Metrics* metrics)
    : options_(std::move(options)),
      device_(device),
      clock_(clock),
      all_metrics_(metrics),
      answer_order_(options_.settings.preserve_ordering ? std::make_unique<AnswerOrder>() : nullptr),
      busy_since_(std::make_unique<std::atomic<int64_t>[]>(options_.settings.instances)) {}

ServedModel::~ServedModel() { Close(); }

absl::Status ServedModel::Load() {
  const absl::Time start = clock_->Now();
  absl::Status status = LoadWeights();
  if (status.ok()) status = MakeBatcher();
  if (status.ok()) status = WarmUp();
  metrics_ =
      all_metrics_->ForModel(name(), version(), model_ ? models::TaskName(model_->description().task) : "");
  if (status.ok()) StartInstances();
  const absl::Duration took = clock_->Now() - start;
  metrics_->SetLoadDuration(took);
  metrics_->SetReady(status.ok());
  {
    absl::MutexLock lock(&mutex_);
    load_duration_ = took;
  }
  if (!status.ok()) {
    SetState(ModelSnapshot::State::kUnavailable, std::string(status.message()));
    return status;
  }
  SetState(ModelSnapshot::State::kReady, "");
  return absl::OkStatus();
}

absl::Status ServedModel::LoadWeights() {
  const ModelSettings& settings = options_.settings;
  try {
    model_ = models::Load(settings.architecture, settings.options, options_.version.weights_path,
                          settings.labels, settings.gpu);
    return absl::OkStatus();
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory left for the weights");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

absl::Status ServedModel::MakeBatcher() {
  const ModelSettings& settings = options_.settings;
  BatcherOptions batching = settings.batching;
  if (batching.max_queue_size == 0) batching.max_queue_size = options_.default_max_queue_size;
  batching.threads = settings.gpu ? 1 : options_.threads_per_instance;
  auto batcher = Batcher::Create(batching, settings.instances, device_);
  if (!batcher.ok()) return batcher.status();
  batcher_ = *std::move(batcher);
  return absl::OkStatus();
}

// The first passes choose algorithms and allocate; no client should wait for that. The batcher learns from
// them how long a pass takes. A full batch of a large input is left out: what it allocates would stay, for a
// batch that may never come.
absl::Status ServedModel::WarmUp() {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  const models::ImageInput& input = model_->description().input;
  UseThreads(options_.threads_per_instance);
  for (const models::Placement& placement : models::PlacementsToWarm(input)) {
    const models::Size bucket = placement.bucket;
    const int64_t bytes = input.channels() * placement.depth * bucket.height * bucket.width *
                          static_cast<int64_t>(sizeof(float));
    for (const int64_t batch : std::set<int64_t>{1, max_batch_size()}) {
      if (batch > 1 && batch * bytes > kMostBytes) continue;
      if (absl::Status warm = WarmUp(placement, batch); !warm.ok()) return warm;
    }
  }
  return absl::OkStatus();
}

absl::Status ServedModel::WarmUp(const models::Placement& placement, int64_t size) {
  // A pass that took longer is close enough to the next one to learn from: what the first one does besides is
  // less.
  constexpr absl::Duration kLong = absl::Milliseconds(500);
  const models::ImageInput& input = model_->description().input;
  const models::Size bucket = placement.bucket;
  const std::vector<float> grey(input.channels() * placement.depth * bucket.height * bucket.width, 0.0F);
  for (int passes = 1;; ++passes) {
    const absl::Time start = clock_->Now();
    auto results = Forward(*model_, {static_cast<size_t>(size), absl::MakeConstSpan(grey)},
                           {static_cast<size_t>(size), placement});
    if (!results.ok()) {
      return absl::Status(results.status().code(),
                          absl::StrCat("warming up with a batch of ", size, " of ", bucket.height, " x ",
                                       bucket.width, " (height x width): ", results.status().message()));
    }
    const absl::Duration took = clock_->Now() - start;
    if (passes == 1 && took < kLong) continue;
    batcher_->Learn(BucketId(placement), size, took);
    return absl::OkStatus();
  }
}

void ServedModel::StartInstances() {
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < options_.settings.instances; ++i) {
    instances_.emplace_back([this, i] { RunInstance(i); });
  }
}

void ServedModel::KeepToOwnCores(int index) const {
  const int threads = options_.threads_per_instance;
  const std::vector<int> cores = CoresFrom(AllowedCores(), options_.first_core + index * threads, threads);
  if (absl::Status kept = KeepToCores(cores); !kept.ok()) {
    Log(LogLevel::kWarning, "instance not pinned",
        {{"model", name()}, {"instance", index}, {"reason", std::string(kept.message())}});
  }
}

void ServedModel::RunInstance(int index) {
  pthread_setname_np(pthread_self(), absl::StrCat("instance-", index).c_str());
  if (options_.settings.pin) KeepToOwnCores(index);
  UseThreads(options_.threads_per_instance);
  while (true) {
    std::vector<std::unique_ptr<BatchTask>> batch = batcher_->Take(index);
    if (batch.empty()) return;
    Compute(index, std::move(batch));
  }
}

void ServedModel::Compute(int instance, std::vector<std::unique_ptr<BatchTask>> batch) {
  // A pass that comes further does not hang, however long it takes.
  const auto advanced = [this, instance] {
    busy_since_[instance].store(absl::ToUnixNanos(clock_->Now()), std::memory_order_relaxed);
  };
  advanced();
  const size_t handed_out = batch.size();
  DropDead(batch, clock_->Now());
  const bool batch_was_cut = batch.size() != handed_out;
  const bool as_usual = ComputeBatch(*model_, std::move(batch), clock_, metrics_.get(), advanced);
  busy_since_[instance].store(0, std::memory_order_relaxed);
  batcher_->Finished(instance, as_usual && !batch_was_cut);
}

absl::Status ServedModel::Submit(std::unique_ptr<BatchTask>& share) {
  std::optional<TinyBatch> tiny;
  absl::Status taken = batcher_->Submit(share, &tiny);
  if (tiny) Compute(tiny->instance, std::move(tiny->tasks));
  return taken;
}

const models::Description& ServedModel::description() const { return model_->description(); }

ModelSnapshot ServedModel::Snapshot() const {
  ModelSnapshot snapshot;
  snapshot.name = name();
  snapshot.version = version();
  snapshot.max_batch_size = max_batch_size();
  snapshot.description.architecture = options_.settings.architecture;
  absl::MutexLock lock(&mutex_);
  snapshot.state = state_;
  snapshot.reason = reason_;
  snapshot.load_duration = load_duration_;
  if (state_ == ModelSnapshot::State::kReady) {
    snapshot.description = model_->description();
    snapshot.queued = batcher_->queued();
  }
  return snapshot;
}

absl::Status ServedModel::CheckReady() const {
  absl::MutexLock lock(&mutex_);
  switch (state_) {
    case ModelSnapshot::State::kReady:
      return absl::OkStatus();
    case ModelSnapshot::State::kLoading:
      return absl::UnavailableError(absl::StrCat("model '", name(), "' is still loading; try again"));
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return absl::UnavailableError(
      absl::StrCat("model '", name(), "' version ", version(), " is unavailable: ", reason_));
}

absl::Duration ServedModel::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < options_.settings.instances; ++i) {
    const int64_t since = busy_since_[i].load(std::memory_order_relaxed);
    if (since != 0) longest = std::max(longest, clock_->Now() - absl::FromUnixNanos(since));
  }
  return longest;
}

void ServedModel::SetState(ModelSnapshot::State state, std::string reason) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
  reason_ = std::move(reason);
}

void ServedModel::Close() {
  std::vector<std::thread> instances;
  {
    absl::MutexLock lock(&mutex_);
    instances.swap(instances_);
    if (state_ == ModelSnapshot::State::kReady) {
      state_ = ModelSnapshot::State::kUnavailable;
      reason_ = "the daemon is shutting down";
    }
  }
  if (instances.empty()) return;
  batcher_->Close();
  for (std::thread& instance : instances) instance.join();
  metrics_->SetReady(false);
}

}  // namespace saccade::server
