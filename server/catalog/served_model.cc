#include "server/catalog/served_model.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/device/use_threads.h"
#include "server/logging/log.h"
#include "server/catalog/cores.h"
#include "server/catalog/fastest_threads.h"

namespace saccade::server {
namespace {

// How long a thread that submitted a request continues to compute tiny batches of other requests.
constexpr absl::Duration kLent = absl::Milliseconds(1);

Places PlacesOf(const ModelSettings& settings) {
  return settings.gpus.empty() ? Places(settings.instances) : settings.gpus;
}

}  // namespace

ServedModel::ServedModel(ServedModelOptions options, Device* device, Clock* clock, Metrics* metrics)
    : options_(std::move(options)),
      device_(device),
      clock_(clock),
      all_metrics_(metrics),
      answer_order_(options_.settings.preserve_ordering ? std::make_unique<AnswerOrder>() : nullptr),
      ensemble_(options_.settings.backend == Backend::kEnsemble
                    ? std::make_shared<const Ensemble>(options_.settings, options_.version.version)
                    : nullptr),
      places_(PlacesOf(options_.settings)),
      busy_since_(std::make_unique<std::atomic<int64_t>[]>(places_.size())) {}

ServedModel::~ServedModel() { Close(); }

absl::Status ServedModel::Load() {
  const absl::Time start = clock_->Now();
  const absl::Status status = ensemble_ != nullptr ? CheckEnsemble() : LoadNetwork();
  std::string_view task = ensemble_ != nullptr ? NameOf(Backend::kEnsemble) : "";
  if (!engines_.empty()) task = models::TaskName(description().task);
  metrics_ = all_metrics_->ForModel(name(), version(), task);
  if (status.ok()) OpenCache();
  if (status.ok() && ensemble_ == nullptr) StartInstances();
  const absl::Duration took = clock_->Now() - start;
  if (status.ok() || !options_.takes_over) {
    metrics_->SetLoadDuration(took);
    metrics_->SetReady(status.ok());
  }
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

absl::Status ServedModel::Check(const ModelSettings& settings, const ModelVersion& version,
                                bool allow_executable_models) {
  if (!version.status.ok()) return version.status;
  // Whether its steps fit can only be checked with their models loaded.
  if (settings.backend == Backend::kEnsemble) return absl::OkStatus();
  // The machine that checks need not have a GPU.
  if (!settings.gpus.empty()) return CheckEngine(settings, allow_executable_models);
  ServedModelOptions options;
  options.settings = settings;
  options.version = version;
  options.allow_executable_models = allow_executable_models;
  ServedModel model(std::move(options), nullptr, Clock::Real(), nullptr);
  return model.LoadWeights();
}

absl::Status ServedModel::LoadNetwork() {
  absl::Status status = LoadWeights();
  if (status.ok()) status = MakeBatcher();
  if (status.ok()) status = WarmUp();
  return status;
}

absl::Status ServedModel::CheckEnsemble() const {
  const EnsembleRunner* const runner = options_.rooms.ensembles;
  if (runner == nullptr || !runner->check)
    return absl::UnimplementedError("ensembles are not supported here");
  return runner->check(*ensemble_);
}

absl::StatusOr<std::unique_ptr<Engine>> ServedModel::LoadEngineAt(int place) const {
  EngineOptions options;
  options.version = options_.version;
  options.allow_executable_models = options_.allow_executable_models;
  if (!options_.settings.gpus.empty()) options.gpu = place;
  options.instances = static_cast<int>(std::count(places_.begin(), places_.end(), place));
  return options_.load_engine(options_.settings, options);
}

absl::Status ServedModel::LoadWeights() {
  threads_ = options_.threads_per_instance;
  if (options_.settings.gpus.empty()) return LoadOnCpu();
  models::UseThreads(threads_);
  for (const int gpu : std::set<int>(places_.begin(), places_.end())) {
    auto engine = LoadEngineAt(gpu);
    if (!engine.ok()) return engine.status();
    engines_[gpu] = *std::move(engine);
  }
  return absl::OkStatus();
}

absl::Status ServedModel::LoadOnCpu() {
  const auto load = [this]() -> absl::StatusOr<PassMaker> {
    engines_.clear();
    auto engine = LoadEngineAt(places_[0]);
    if (!engine.ok()) return engine.status();
    Engine* const loaded = (engines_[places_[0]] = *std::move(engine)).get();
    return [loaded](int64_t size) { return loaded->WarmUpPass(size); };
  };
  if (!options_.fewer_threads) {
    models::UseThreads(threads_);
    return load().status();
  }
  const auto fastest =
      LoadForFastest(load, options_.threads_per_instance, options_.settings.batching.max_batch_size, clock_);
  if (!fastest.ok()) return fastest.status();
  threads_ = *fastest;
  if (threads_ < options_.threads_per_instance) {
    Log(LogLevel::kInfo, "passes are faster with fewer threads",
        {{"model", name()}, {"threads", threads_}, {"cores", options_.threads_per_instance}});
  }
  return absl::OkStatus();
}

absl::Status ServedModel::MakeBatcher() {
  const ModelSettings& settings = options_.settings;
  BatcherOptions batching = settings.batching;
  if (batching.max_queue_size == 0) batching.max_queue_size = options_.default_max_queue_size;
  batching.threads = settings.gpus.empty() ? threads_ : 1;
  auto batcher = Batcher::Create(batching, places_, device_);
  if (!batcher.ok()) return batcher.status();
  batcher_ = *std::move(batcher);
  return absl::OkStatus();
}

absl::Status ServedModel::WarmUp() {
  models::UseThreads(threads_);
  const Engine::WarmUpOptions options = {.clock = clock_,
                                         .at_most = options_.warm_up / static_cast<int64_t>(engines_.size()),
                                         .learn = [this](int64_t bucket, int64_t size, absl::Duration took) {
                                           batcher_->Learn(bucket, size, took);
                                         }};
  for (const auto& [place, engine] : engines_) {
    if (absl::Status warm = engine->WarmUp(options); !warm.ok()) return warm;
  }
  return absl::OkStatus();
}

void ServedModel::OpenCache() {
  const ModelSettings& settings = options_.settings;
  if (!settings.response_cache) return;
  if (ensemble_ != nullptr || options_.rooms.response_cache == nullptr) {
    Log(LogLevel::kWarning, "model configuration",
        {{"model", name()},
         {"warning", ensemble_ != nullptr
                         ? "response_cache is ignored for ensembles; set it for the models of their steps"
                         : "response_cache is ignored: the daemon runs without --cache-config"}});
    return;
  }
  cached_answers_ = options_.rooms.response_cache->ForModel(settings.max_cached_bytes);
  cache_metrics_ = all_metrics_->ForCacheOf(name(), version());
}

void ServedModel::StartInstances() {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < places_.size(); ++i) {
    instances_.emplace_back([this, i] { RunInstance(static_cast<int>(i)); });
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
  models::UseThreads(threads_);
  while (true) {
    std::vector<std::unique_ptr<BatchTask>> batch = batcher_->Take(index);
    if (batch.empty()) return;
    Compute(index, std::move(batch), nullptr);
  }
}

void ServedModel::Compute(int instance, std::vector<std::unique_ptr<BatchTask>> batch,
                          std::optional<TinyBatch>* next) {
  // A pass that reports progress does not count as hung, however long it takes.
  const auto advanced = [this, instance] {
    busy_since_[instance].store(absl::ToUnixNanos(clock_->Now()), std::memory_order_relaxed);
  };
  advanced();
  const size_t handed_out = batch.size();
  DropDead(batch, clock_->Now());
  const bool batch_was_cut = batch.size() != handed_out;
  const int64_t bucket = batch.empty() ? 0 : batch[0]->bucket();
  const PassEnd end =
      engines_.at(places_[instance])->Compute(std::move(batch), clock_, metrics_.get(), advanced);
  busy_since_[instance].store(0, std::memory_order_relaxed);
  if (end.device_lost) device_lost_ = true;
  if (end.no_room_for > 0) {
    metrics_->RecordNoMemory();
    batcher_->NoRoomFor(bucket, end.no_room_for);
  }
  batcher_->Finished(instance, end.whole && !batch_was_cut, next);
}

absl::Status ServedModel::Submit(std::unique_ptr<BatchTask>& share) {
  // Passes on GPUs or on pinned cores only run on their instances' threads.
  if (!options_.settings.gpus.empty() || options_.settings.pin) return batcher_->Submit(share);
  std::optional<TinyBatch> tiny;
  absl::Status taken = batcher_->Submit(share, &tiny);
  if (!tiny) return taken;
  const absl::Time lent_until = clock_->Now() + kLent;
  while (tiny) {
    std::optional<TinyBatch> next;
    Compute(tiny->instance, std::move(tiny->tasks), clock_->Now() < lent_until ? &next : nullptr);
    tiny = std::move(next);
  }
  return taken;
}

const models::Description& ServedModel::description() const { return engine().description(); }

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
  snapshot.ensemble = ensemble_ != nullptr;
  if (snapshot.ensemble) snapshot.description.architecture = NameOf(Backend::kEnsemble);
  if (state_ == ModelSnapshot::State::kReady && !snapshot.ensemble) {
    snapshot.description = description();
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
    case ModelSnapshot::State::kUnloading:
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return absl::UnavailableError(
      absl::StrCat("model '", name(), "' version ", version(), " is unavailable: ", reason_));
}

absl::Duration ServedModel::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (size_t i = 0; i < places_.size(); ++i) {
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
  if (cached_answers_ != nullptr) cached_answers_->Close();
  if (!handed_over_) metrics_->SetReady(false);
}

}  // namespace saccade::server
