// How a model is loaded: its files are checked, its precision, threads and instances chosen, its passes
// warmed up.
#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/device/instruction_set.h"
#include "models/device/use_threads.h"
#include "server/catalog/instance_trial.h"
#include "server/catalog/served_model.h"
#include "server/catalog/thread_trial.h"
#include "server/core/free_memory.h"
#include "server/core/sha256.h"
#include "server/drift/drift_json.h"
#include "server/logging/log.h"
#include "server/repository/answer_settings.h"
#include "server/repository/checksums.h"
#include "server/repository/files.h"

namespace saccade::server {
namespace {

// Memory of a loaded model by the size of its weights: at most this many times as much, and this much
// besides.
constexpr int64_t kMaxGrowth = 4;
constexpr int64_t kSlack = 32 << 20;

// Computes checksums of the model's files, each once as long as the file does not change.
FileSummer FileSummerOf(const ServedModelOptions& options) {
  ModelKinds* const kinds = options.deps.kinds;
  if (kinds == nullptr) return FileSum;
  return [kinds](const std::string& path) { return kinds->digests()->SumOf(path); };
}

// The engine of a model on the CPU, for choosing its precision.
EngineOptions OnCpu(const ServedModelOptions& options) { return {.version = options.version}; }

// The precisions of which the model's samples choose one. Empty if they choose none.
std::vector<models::Precision> PrecisionsBySamples(const ServedModelOptions& options) {
  const ModelSettings& settings = options.settings;
  if (settings.backend != Backend::kSaccade || !settings.gpus.empty()) return {};
  return ComparedPrecisions(settings, OnCpu(options), options.native);
}

// The precision that was measured to be the best; nullopt if the samples cannot have chosen it.
std::optional<models::Precision> PrecisionOf(const MeasuredKind& kind, const ServedModelOptions& options) {
  for (const models::Precision precision : PrecisionsBySamples(options)) {
    if (kind.precision == models::PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

// Whether it can have been measured with these options. A file that was changed may hold anything.
bool Fits(const MeasuredKind& kind, const ServedModelOptions& options) {
  const bool chosen = options.settings.optimize.has_value();
  return kind.threads <= (chosen ? options.cores : options.threads_per_instance) &&
         kind.instances <= MaxInstances(options) &&
         std::all_of(kind.passes.begin(), kind.passes.end(),
                     [&](const MeasuredKind::Pass& pass) {
                       return pass.size <= options.settings.batching.max_batch_size;
                     }) &&
         (PrecisionsBySamples(options).empty() || PrecisionOf(kind, options));
}

// Returns the measurements of the kind `kind`, if there are any that fit the model. REQUIRES: there are
// kinds.
std::optional<MeasuredKind> FindKind(const ServedModelOptions& options, const std::string& kind) {
  if (kind.empty()) return std::nullopt;
  auto known = options.deps.kinds->Find(kind);
  return known && Fits(*known, options) ? std::move(known) : std::nullopt;
}

// Checks the checksums of the model's files. Call it before anything reads the weights.
absl::Status CheckFiles(const ModelSettings& settings, const ModelVersion& version,
                        const ChecksumRules& rules) {
  if (settings.repository.empty()) return absl::OkStatus();
  if (rules.required && settings.from_request)
    return absl::FailedPreconditionError(
        "the request has a configuration of its own, which is not signed, and the daemon runs with "
        "--require-signed; load the model with the configuration in the repository");
  return CheckChecksums(settings.repository, settings.name, rules,
                        {version.weights_path, version.int8_weights_path});
}

// What the file system says of the weights; changes if other files take their places.
std::string StampWeights(const ModelVersion& version) {
  std::vector<std::string> paths = {version.weights_path};
  if (!version.int8_weights_path.empty()) paths.push_back(version.int8_weights_path);
  return StampOfFiles(paths);
}

// What drift is compared with, if a file in the version's folder says that; nullopt if there is none.
absl::StatusOr<std::optional<Distribution>> ReadDriftFile(const ModelSettings& settings, int64_t version) {
  if (settings.repository.empty()) return std::nullopt;
  const auto root = RepositoryPath::Root(settings.repository);
  if (!root.ok()) return root.status();
  const RepositoryPath file = *root / settings.name / absl::StrCat(version) / kDriftFile;
  if (!file.Exists()) return std::nullopt;
  const auto text = file.ReadText(kMaxDriftFileBytes);
  if (!text.ok()) return text.status();
  auto distribution = ReadDistribution(*text);
  if (!distribution.ok())
    return absl::InvalidArgumentError(absl::StrCat(file.shown(), ": ", distribution.status().message()));
  return *std::move(distribution);
}

absl::Status CheckAttested(const ModelSettings& settings, const ModelPermissions& permissions) {
  if (!settings.attest) return absl::OkStatus();
  if (settings.backend == Backend::kEnsemble) {
    return absl::InvalidArgumentError(
        "the parameter attest is true, but answers of ensembles cannot be signed, because several models "
        "make "
        "them; remove the parameter, and set it for models that clients ask themselves");
  }
  if (!permissions.attestation_key_sha256.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the parameter attest is true, but the daemon has no key to sign answers with; start it with "
      "--attest-key and a file that 'openssl genpkey -algorithm ed25519' has written, or remove the "
      "parameter");
}

}  // namespace

std::string KindOf(const ServedModelOptions& options) {
  const ModelSettings& settings = options.settings;
  std::string kind = KindOfSettings(settings, options.version, options.threads_per_instance);
  if (kind.empty()) return kind;
  if (options.fewer_threads)
    kind += MaxInstances(options) > 1 ? "\nthreads and instances by trial" : "\nthreads by trial";
  if (settings.optimize) {
    absl::StrAppend(&kind, "\n", NameOf(*settings.optimize),
                    settings.has_instances ? " of these instances on " : " on ", options.cores);
  }
  absl::StrAppend(&kind, "\n", absl::ToInt64Milliseconds(options.warm_up));
  const bool by_samples = !PrecisionsBySamples(options).empty();
  if (by_samples) absl::StrAppend(&kind, "\nsamples may change by ", settings.max_precision_loss);
  FileDigests anew;
  const auto files = KindOfFiles(settings, options.version, by_samples,
                                 options.deps.kinds != nullptr ? options.deps.kinds->digests() : &anew);
  return files ? kind + *files : "";
}

std::optional<MeasuredKind> FindKind(const ServedModelOptions& options) {
  if (options.deps.kinds == nullptr) return std::nullopt;
  return FindKind(options, KindOf(options));
}

absl::Status ServedModel::Load() {
  const absl::Time start = load_start_ = clock_->Now();
  ReportStep(LoadStep::Kind::kChecking);
  absl::Status status = CheckAttested(options_.settings, options_.permissions);
  const std::string files = StampWeights(options_.version);
  if (status.ok()) status = CheckFiles(options_.settings, options_.version, options_.permissions.checksums);
  if (status.ok()) status = ensemble_ != nullptr ? CheckEnsemble() : LoadOnNode();
  std::string_view task = ensemble_ != nullptr ? NameOf(Backend::kEnsemble) : "";
  if (!engines_.empty()) task = models::TaskName(description().task);
  metrics_ = all_metrics_->ForModel(name(), version(), task);
  if (precision_) metrics_->SetPrecision(models::PrecisionName(precision_->precision));
  ModelIdentity identity;
  if (status.ok()) {
    identity = MakeIdentity();
    // Its checksum is of the file that was loaded, if that is still the same.
    if (StampWeights(options_.version) != files)
      status = absl::FailedPreconditionError(
          "the weights were replaced while they were loaded; load the model again");
  }
  if (status.ok()) {
    identity_ = std::make_shared<const ModelIdentity>(std::move(identity));
    OpenCache();
    WatchDrift();
    OpenShadow();
  }
  if (status.ok() && ensemble_ == nullptr) StartInstances();
  const absl::Time loaded = clock_->Now();
  const absl::Duration took = loaded - start;
  last_used_.store(absl::ToUnixNanos(loaded), std::memory_order_relaxed);
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

void ServedModel::ReportStep(LoadStep::Kind kind, int64_t done, int64_t of) const {
  if (options_.deps.load_step)
    options_.deps.load_step({.kind = kind, .done = done, .of = of, .since = load_start_});
}

absl::Status ServedModel::Check(const ModelSettings& settings, const ModelVersion& version,
                                const ModelPermissions& permissions, std::vector<std::string>* warnings) {
  if (!version.status.ok()) return version.status;
  if (absl::Status attested = CheckAttested(settings, permissions); !attested.ok()) return attested;
  absl::Status whole = CheckFiles(settings, version, permissions.checksums);
  if (!whole.ok()) return whole;
  // Whether its steps fit can only be checked with their models loaded.
  if (settings.backend == Backend::kEnsemble) return absl::OkStatus();
  // The machine that checks need not have a GPU.
  if (!settings.gpus.empty()) return CheckEngine(settings, permissions);
  ServedModelOptions options;
  options.settings = settings;
  options.version = version;
  options.permissions = permissions;
  ServedModel model(std::move(options), nullptr, Clock::Real(), nullptr);
  absl::Status loaded = model.LoadWeights();
  if (!loaded.ok() || warnings == nullptr) return loaded;
  // Trying a program may find what loading it noted already.
  std::set<std::string> seen;
  const auto add = [&](const std::vector<std::string>& more) {
    for (const std::string& warning : more) {
      if (seen.insert(warning).second) warnings->push_back(warning);
    }
  };
  add(model.engine().description().notes);
  add(model.engine().Try());
  return loaded;
}

absl::StatusOr<InstanceSplit> ServedModel::TryAgain(ServedModelOptions options) const {
  options.deps = {};
  // The files may have changed since Load().
  absl::Status whole = CheckFiles(options.settings, options.version, options.permissions.checksums);
  if (!whole.ok()) return whole;
  ServedModel again(std::move(options), nullptr, clock_, nullptr);
  again.precision_ = precision_;
  if (absl::Status loaded = again.LoadWeights(); !loaded.ok()) return loaded;
  return InstanceSplit{.instances = static_cast<int>(again.devices_.size()), .threads = again.threads_};
}

absl::Status ServedModel::LoadOnNode() {
  // A trial of instances uses all nodes.
  if (options_.settings.optimize || NodeOf(0) == nullptr) return LoadNetwork();
  absl::Status status;
  std::thread([&, call = CurrentLogCall()] {
    const LogCallScope scope(call);
    pthread_setname_np(pthread_self(), "load");
    KeepToNode(0);
    try {
      status = LoadNetwork();
    } catch (const std::exception& error) {
      status = absl::ResourceExhaustedError(absl::StrCat("the model could not be started: ", error.what()));
    }
  }).join();
  return status;
}

absl::Status ServedModel::LoadNetwork() {
  ModelKinds* const kinds = options_.deps.kinds;
  const std::string kind = kinds != nullptr ? KindOf(options_) : "";
  if (kinds != nullptr && !options_.split) {
    if (auto known = FindKind(options_, kind)) {
      measured_ = *std::move(known);
      is_measured_ = true;
    }
  }
  const int64_t allocated_before = AllocatedBytes();
  absl::Status status = ChooseItsPrecision();
  if (status.ok()) status = LoadAndWarmUp(allocated_before);
  // If the files have changed meanwhile, it is not known which of them were measured.
  if (status.ok() && kinds != nullptr && !is_measured_ && KindOf(options_) == kind)
    kinds->Keep(kind, measured_);
  return status;
}

absl::Status ServedModel::LoadAndWarmUp(int64_t allocated_before) {
  absl::Status status = LoadWeights();
  if (status.ok()) status = MakeQueue();
  if (status.ok()) status = WarmUp();
  if (!status.ok() || is_measured_) return status;
  measured_.threads = threads_;
  measured_.instances = static_cast<int>(devices_.size());
  if (!PrecisionsBySamples(options_).empty()) {
    measured_.precision = models::PrecisionName(precision_->precision);
    measured_.precision_reason = precision_->reason;
  }
  // Requests of other models allocate meanwhile, so the growth is trusted within bounds alone.
  const int64_t weights = WeightsBytes(options_.version);
  measured_.bytes = std::clamp(AllocatedBytes() - allocated_before, weights, kMaxGrowth * weights + kSlack);
  return status;
}

absl::Status ServedModel::ChooseItsPrecision() {
  const ModelSettings& settings = options_.settings;
  if (settings.backend != Backend::kSaccade) return absl::OkStatus();
  if (options_.precision) {
    precision_ = options_.precision;
    return absl::OkStatus();
  }
  const auto remembered = is_measured_ ? PrecisionOf(measured_, options_) : std::nullopt;
  if (remembered) {
    precision_ = PrecisionChoice{.precision = *remembered,
                                 .reason = measured_.precision_reason,
                                 .lacks = LackedPrecisions(settings, OnCpu(options_), options_.native)};
  } else {
    models::UseThreads(options_.threads_per_instance);
    if (models::IsPrecisionAuto(settings.options)) ReportStep(LoadStep::Kind::kPrecision);
    auto choice = ChoosePrecision(settings, EngineOptionsFor(devices_[0]), options_.native, clock_);
    if (!choice.ok()) return choice.status();
    precision_ = *std::move(choice);
  }
  if (!models::IsPrecisionAuto(settings.options)) return absl::OkStatus();
  Log(LogLevel::kInfo, "precision chosen",
      {{"model", name()},
       {"version", version()},
       {"precision", models::PrecisionName(precision_->precision)},
       {"reason", precision_->reason}});
  if (options_.deps.log_once == nullptr) return absl::OkStatus();
  for (const std::string& lack : precision_->lacks)
    options_.deps.log_once->Warn(lack, {{"first_model", name()}, {"version", version()}});
  return absl::OkStatus();
}

ModelIdentity ServedModel::MakeIdentity() const {
  ModelIdentity identity;
  if (ensemble_ != nullptr) return identity;
  identity.instruction_set =
      options_.settings.gpus.empty() ? models::InstructionSet() : models::InstructionSetOfGpus(devices_);
  if (precision_) identity.precision = models::PrecisionName(precision_->precision);
  identity.configuration_sha256 = Sha256Hex(AnswerSettings(options_.settings));
  if (options_.settings.attest) identity.attestation_key_sha256 = options_.permissions.attestation_key_sha256;
  const std::string& path =
      precision_ ? WeightsFor(options_.version, precision_->precision) : options_.version.weights_path;
  if (path.empty()) return identity;
  auto sum = FileSummerOf(options_)(path);
  if (sum.ok()) {
    identity.weights_sha256 = *std::move(sum);
  } else {
    // The model serves all the same; replays compare its answers by tolerance.
    Log(LogLevel::kWarning, "the weights' checksum is not known",
        {{"model", name()}, {"version", version()}, {"reason", sum.status().message()}});
  }
  return identity;
}

absl::Status ServedModel::CheckEnsemble() const {
  if (!options_.deps.check_ensemble) return absl::UnimplementedError("ensembles are not supported here");
  return options_.deps.check_ensemble(*ensemble_);
}

EngineOptions ServedModel::EngineOptionsFor(int device) const {
  EngineOptions options;
  options.version = options_.version;
  options.permissions = options_.permissions;
  if (!options_.settings.gpus.empty()) options.gpu = device;
  options.instances = static_cast<int>(std::count(devices_.begin(), devices_.end(), device));
  if (precision_) options.precision = precision_->precision;
  options.file_sum = FileSummerOf(options_);
  return options;
}

absl::Status ServedModel::LoadWeights() {
  ReportStep(LoadStep::Kind::kReading);
  if (options_.settings.gpus.empty()) return LoadOnCpu();
  models::UseThreads(threads_);
  for (const int gpu : std::set<int>(devices_.begin(), devices_.end())) {
    auto engine = options_.load_engine(options_.settings, EngineOptionsFor(gpu));
    if (!engine.ok()) return engine.status();
    engines_[gpu] = *std::move(engine);
  }
  return absl::OkStatus();
}

absl::StatusOr<PassMaker> ServedModel::LoadEngineOnCpu() {
  engines_.clear();
  auto engine = options_.load_engine(options_.settings, EngineOptionsFor(devices_[0]));
  if (!engine.ok()) return engine.status();
  Engine* const loaded = (engines_[devices_[0]] = *std::move(engine)).get();
  return [loaded](int64_t size) { return loaded->WarmUpPass(size); };
}

absl::Status ServedModel::LoadOnCpu() {
  if (options_.split) {
    threads_ = options_.split->threads;
    devices_ = Devices(static_cast<size_t>(options_.split->instances));
    models::UseThreads(threads_);
    return LoadEngineOnCpu().status();
  }
  if (is_measured_) {
    threads_ = measured_.threads;
    devices_ = Devices(static_cast<size_t>(measured_.instances));
    Log(LogLevel::kInfo, "uses earlier measurements",
        {{"model", name()}, {"instances", measured_.instances}, {"threads", threads_}});
  } else if (options_.settings.optimize) {
    return LoadForItsGoal();
  }
  if (!options_.fewer_threads || is_measured_) {
    models::UseThreads(threads_);
    return LoadEngineOnCpu().status();
  }
  const auto load_and_try = [this](int threads) {
    if (MaxInstances(options_) > options_.settings.instances) devices_ = Devices(InstancesBeside(threads));
    auto loaded = LoadEngineOnCpu();
    // The passes that are timed, and a further load, follow.
    ReportStep(LoadStep::Kind::kTrial);
    return loaded;
  };
  const auto best = LoadForBestThreads(load_and_try, options_.threads_per_instance,
                                       options_.settings.batching.max_batch_size, clock_);
  if (!best.ok()) return best.status();
  threads_ = *best;
  if (threads_ < options_.threads_per_instance) {
    Log(LogLevel::kInfo, "passes take fewer threads",
        {{"model", name()},
         {"threads", threads_},
         {"instances", devices_.size()},
         {"cores", options_.threads_per_instance}});
  }
  return absl::OkStatus();
}

size_t ServedModel::InstancesBeside(int threads) const {
  return static_cast<size_t>(std::clamp(options_.threads_per_instance / threads, 1, MaxInstances(options_)));
}

absl::Status ServedModel::LoadForItsGoal() {
  const ModelSettings& settings = options_.settings;
  const auto load = [this](int instances) {
    devices_ = Devices(static_cast<size_t>(instances));
    auto loaded = LoadEngineOnCpu();
    ReportStep(LoadStep::Kind::kTrial);
    return loaded;
  };
  const auto split = LoadForGoal(load, {.goal = *settings.optimize,
                                        .cores = options_.cores,
                                        .instances = settings.has_instances ? settings.instances : 0,
                                        .max_batch_size = settings.batching.max_batch_size,
                                        .clock = clock_});
  if (!split.ok()) return split.status();
  threads_ = split->threads;
  Log(LogLevel::kInfo, "instances chosen by trial",
      {{"model", name()},
       {"optimize", NameOf(*settings.optimize)},
       {"instances", split->instances},
       {"threads", split->threads},
       {"cores", options_.cores}});
  return absl::OkStatus();
}

BatcherOptions ServedModel::BatchingOfQueue() const {
  const ModelSettings& settings = options_.settings;
  BatcherOptions batching = settings.batching;
  if (batching.max_queue_size == 0) batching.max_queue_size = options_.default_max_queue_size;
  batching.threads = settings.gpus.empty() ? threads_ : 1;
  return batching;
}

absl::Status ServedModel::MakeQueue() {
  auto queue = DeviceModel<CallShare>::Create(BatchingOfQueue(), devices_, group_);
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  return absl::OkStatus();
}

absl::Status ServedModel::WarmUp() {
  models::UseThreads(threads_);
  ReportStep(LoadStep::Kind::kWarmUp);
  for (const MeasuredKind::Pass& pass : measured_.passes) queue_->Learn(pass.bucket, pass.size, pass.took);
  Engine::WarmUpOptions options = {
      .clock = clock_,
      .max_time = options_.warm_up / static_cast<int64_t>(engines_.size()),
      .learn =
          [this](int64_t bucket, int64_t size, absl::Duration took) {
            queue_->Learn(bucket, size, took);
            measured_.passes.push_back({bucket, size, took});
          },
      .advanced = [this](int64_t done, int64_t of) { ReportStep(LoadStep::Kind::kWarmUp, done, of); }};
  if (is_measured_) {
    // The smallest and the largest batch still allocate what they need. Their times are known better than
    // from here, where other models may be loaded beside this one.
    options.max_time = absl::ZeroDuration();
    options.learn = [](int64_t, int64_t, absl::Duration) {};
  }
  for (const auto& [device, engine] : engines_) {
    if (absl::Status warm = engine->WarmUp(options); !warm.ok()) return warm;
  }
  return absl::OkStatus();
}

void ServedModel::OpenCache() {
  const ModelSettings& settings = options_.settings;
  if (!settings.response_cache) return;
  if (ensemble_ != nullptr || options_.deps.response_cache == nullptr) {
    Log(LogLevel::kWarning, "model configuration",
        {{"model", name()},
         {"warning", ensemble_ != nullptr
                         ? "response_cache is ignored for ensembles; set it for the models of their steps"
                         : "response_cache is ignored: the daemon runs without --cache-config"}});
    return;
  }
  cached_answers_ = options_.deps.response_cache->ForModel(settings.max_cached_bytes);
  cache_metrics_ = all_metrics_->ForCacheOf(name(), version());
}

void ServedModel::WatchDrift() {
  const int64_t window = options_.settings.drift_window;
  if (window == 0) return;
  const auto warn = [this](const std::string& what) {
    Log(LogLevel::kWarning, "model configuration",
        {{"model", name()}, {"version", version()}, {"warning", what}});
  };
  if (ensemble_ != nullptr || description().task == models::Task::kTensors) {
    warn(
        "drift_window is ignored: only models of pictures, clips or volumes are watched, and the models of "
        "an "
        "ensemble's steps by themselves");
    return;
  }
  auto reference = ReadDriftFile(options_.settings, version());
  if (!reference.ok()) {
    warn(absl::StrCat(reference.status().message(), "; the first items are compared with instead"));
    reference = std::nullopt;
  }
  drift_ = std::make_unique<DriftWatch>(window, *std::move(reference));
  drift_metrics_ = all_metrics_->ForDriftOf(name(), version(), DriftFeatures());
}

void ServedModel::OpenShadow() {
  const std::optional<ShadowRule>& rule = options_.settings.shadow;
  if (!rule || is_shadow() || options_.deps.find_version == nullptr) return;
  // The rule for promotions applies only to the version that the shadow version would replace.
  ShadowRule of_this = *rule;
  if (of_this.promote && of_this.promote->replaces != version()) of_this.promote.reset();
  shadow_ = std::make_shared<Shadow>(
      of_this, all_metrics_->ForShadowOf(name(), version(), rule->version, of_this.promote.has_value()),
      options_.deps.shadow_decided);
  shadow_sender_ = std::make_unique<ShadowSender>();
}

}  // namespace saccade::server
