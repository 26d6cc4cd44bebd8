// One version of a model at work: its engines, queue, instance threads and state. It knows of no other
// version: the ModelHost owns and replaces it, the ModelTable hands it to requests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/api/description.h"
#include "server/batching/device_model.h"
#include "server/cache/response_cache.h"
#include "server/catalog/instance_trial.h"
#include "server/catalog/memory_nodes.h"
#include "server/catalog/model_kinds.h"
#include "server/catalog/pinned_cores.h"
#include "server/catalog/thread_trial.h"
#include "server/core/clock.h"
#include "server/engine/answer_order.h"
#include "server/engine/engine.h"
#include "server/engine/model_permissions.h"
#include "server/engine/precision_choice.h"
#include "server/engine/ready_model.h"
#include "server/engine/shadow_sender.h"
#include "server/ensembles/ensemble_plan.h"
#include "server/logging/log_once.h"
#include "server/metrics/metrics.h"
#include "server/repository/repository.h"

namespace saccade::server {

// What a load does at the moment.
struct LoadStep {
  enum class Kind { kWaiting, kChecking, kPrecision, kReading, kTrial, kWarmUp };
  Kind kind = Kind::kWaiting;
  // How many batches of the warm-up were computed, and of how many; both 0 where nothing is counted.
  int64_t done = 0;
  int64_t of = 0;
  // When the load began; InfiniteFuture while it waits.
  absl::Time since = absl::InfiniteFuture();
};

// Further dependencies. All may be null, and must outlive the model.
struct ServedModelDeps {
  // Holds the answers of models that configure response_cache.
  ResponseCache* response_cache = nullptr;
  // Checks, before an ensemble is ready, that its steps can be run.
  std::function<absl::Status(const Ensemble&)> check_ensemble = nullptr;
  // What was measured of models of the same kind. Null: everything is measured again.
  ModelKinds* kinds = nullptr;
  // Logs what this machine's processor cannot do, once for all models. Null: it is not logged.
  LogOnce* log_once = nullptr;
  // Called by Load() on its thread when a step begins or advances.
  std::function<void(const LoadStep&)> load_step = nullptr;
  // Finds another version of the model, for settings.shadow.
  std::function<absl::StatusOr<std::shared_ptr<ReadyModel>>(int64_t version)> find_version = nullptr;
  // Called when it is decided whether the shadow version is promoted; see the constructor of Shadow.
  std::function<void()> shadow_decided = nullptr;
};

struct ServedModelOptions {
  ModelSettings settings;
  ModelVersion version;
  // Used where the model's own configuration sets none.
  int64_t default_max_queue_size = 256;
  // Cores used by one forward pass.
  int threads_per_instance = 1;
  // Cores that all instances together may use, for settings.optimize.
  int cores = 1;
  // Use fewer threads if that suits the passes better, and instances for the cores that they leave.
  bool fewer_threads = false;
  // The instances and threads that a trial has just found (TryAgain): no other trial is made, and what was
  // measured of the kind earlier is measured again.
  std::optional<InstanceSplit> split = std::nullopt;
  // Chosen by an earlier load of the same files; without it, Load() chooses.
  std::optional<PrecisionChoice> precision = std::nullopt;
  // The cores of pinned instances, one instance after the other. REQUIRES: set if settings.pin.
  std::shared_ptr<const CoreRange> pinned_to = nullptr;
  // Where instances that are not pinned run: all on the node of this index (modulo their number) if they fit
  // there, or else one after the other on the following ones (NodeOfInstance). Fewer than two nodes:
  // anywhere.
  std::vector<MemoryNode> nodes = {};
  int first_node = 0;
  // Time limit of the warm-up after the smallest and the largest batch of each bucket.
  absl::Duration warm_up = absl::Seconds(5);
  // Another ServedModel serves this version until this one is ready. If loading fails, the version's metrics
  // stay unchanged.
  bool takes_over = false;
  ServedModelDeps deps = {};
  ModelPermissions permissions = {};
  // What the processor has instructions for.
  NativePrecisions native = NativePrecisionsHere();
  // Loads an engine; called once for the CPU or for each GPU.
  std::function<absl::StatusOr<std::unique_ptr<Engine>>(const ModelSettings&, const EngineOptions&)>
      load_engine = LoadEngine;
};

// Whether the version computes copies of others' requests.
bool IsShadow(const ServedModelOptions& options);

// The most instances that a model has because its passes leave cores free. Each has a thread and its own
// activations, which a node with hundreds of models must be able to hold.
constexpr int kMaxFillingInstances = 8;

// The most instances that the model can have.
int MaxInstances(const ServedModelOptions& options);

// Whether Load() chooses the number of threads by trial. On several nodes of memory it does, but only at the
// start: see TryAgain().
bool IsTried(const ServedModelOptions& options);

// The measured times of a model's passes, and the instances and threads that compute them.
struct ModelTiming {
  // Ascending by bucket; empty while nothing was measured.
  std::vector<LearnedTiming> buckets;
  int instances = 0;
  // Cores of one pass; 0 on a GPU.
  int threads = 0;
  // Cores that all models share.
  int cores = 0;
  int64_t max_queue_size = 0;
  // Memory on the CPU.
  int64_t model_bytes = 0;
};

// The kind of the model, as text: everything that affects its cost (KindOfSettings() and KindOfFiles() of
// model_kinds.h), and what is tried while the model is loaded, so that measurements of a start that tried
// less are not reused by one that tries more. Empty if the model has no kind. Blocks on the file system:
// reads the files on which the kind depends, unless they were read before.
std::string KindOf(const ServedModelOptions& options);

// What options.deps.kinds holds of the model's kind; nullopt if nothing was measured, or cannot have been
// measured with these options. Blocks as KindOf() does.
std::optional<MeasuredKind> FindKind(const ServedModelOptions& options);

// What clients can see of a model.
struct ModelSnapshot {
  enum class State { kLoading, kReady, kUnloading, kUnavailable };
  std::string name;
  int64_t version = 0;
  State state = State::kLoading;
  // Why the model is unavailable; for one that serves, why a newer load of it failed.
  std::string reason;
  int max_batch_size = 0;
  int64_t queued = 0;
  absl::Duration load_duration;
  // While the state is kLoading.
  LoadStep load_step = {};
  // For our own networks that are ready: "fp32" and so on, and why it is that.
  std::string precision;
  std::string precision_reason;
  // Complete only when ready; before that, and for ensembles, only the architecture is set.
  models::Description description;
  bool ensemble = false;
  // Set if the model is ready.
  ModelIdentity identity = {};
  // Set for the version that a shadow version is to replace, and for one that was promoted.
  std::optional<PromotionState> promotion = std::nullopt;
  // Only where it was asked for; see ServedModel::Timing().
  std::optional<ModelTiming> timing = std::nullopt;
};

// Thread-safe.
class ServedModel final : public ReadyModel {
 public:
  // All pointers must outlive the model. It is computed on `group`. Loads nothing yet.
  ServedModel(ServedModelOptions options, DeviceGroup* group, Clock* clock, Metrics* metrics);
  // Calls Close().
  ~ServedModel() override;

  // Reads the weights, warms up and starts the instances. Blocks until that is done. Called once. On error
  // the model stays UNAVAILABLE with the reason.
  absl::Status Load();

  // Checks whether Load() would succeed: the weights exist, are valid, and fit the configuration. A program
  // also computes an item of zeros. What the model's owner should know, but does not keep it from being
  // served, is added to `warnings`, which may be null: the notes of its description, and what is odd about
  // that answer. Of a model for GPUs, only the configuration is checked; of an
  // ensemble, nothing. Blocks.
  static absl::Status Check(const ModelSettings& settings, const ModelVersion& version,
                            const ModelPermissions& permissions,
                            std::vector<std::string>* warnings = nullptr);

  const ModelSettings& settings() const override { return options_.settings; }
  int64_t version() const override { return options_.version.version; }
  // The version with its files.
  const ModelVersion& files() const { return options_.version; }
  ModelSnapshot Snapshot() const;
  // Null unless the model is ready, and neither an ensemble nor a shadow version, whose threads may hold the
  // lock of its times for long without a core. Takes the lock of the model's devices.
  std::optional<ModelTiming> Timing() const;

  // OK once ready; UNAVAILABLE with the reason otherwise.
  absl::Status CheckReady() const;

  // Null unless the model is an ensemble, which has no queue and no description.
  const std::shared_ptr<const Ensemble>& ensemble() const { return ensemble_; }

  // Repeats the trial of Load() with the model loaded once more, while this one serves. `options` are those
  // with which the model would be loaded now. Returns what is best. Blocks, and computes on this thread,
  // which is free to run on any node of memory. REQUIRES: Load() has returned OK, and IsTried(options).
  absl::StatusOr<InstanceSplit> TryAgain(ServedModelOptions options) const;

  // The functions below REQUIRE that CheckReady() returned OK once.
  const models::Description& description() const override;
  const Engine& engine() const override { return *engines_.begin()->second; }
  ModelMetrics* metrics() const override { return metrics_.get(); }
  std::shared_ptr<const ModelIdentity> identity() const override { return identity_; }
  AnswerOrder* answer_order() const override { return answer_order_.get(); }
  // Null unless answers are cached.
  const std::shared_ptr<CachedAnswers>& cached_answers() const { return cached_answers_; }
  const std::shared_ptr<CacheMetrics>& cache_metrics() const { return cache_metrics_; }
  DriftWatch* drift() const override { return drift_.get(); }
  std::shared_ptr<Shadow> shadow() const override { return shadow_; }
  absl::StatusOr<std::shared_ptr<ReadyModel>> FindShadow() const override;
  ShadowSender* shadow_sender() const override { return shadow_sender_.get(); }
  bool times_passes() const override {
    return options_.settings.shadow && options_.settings.shadow->promote.has_value();
  }
  bool has_waiting() const override { return waiting_requests_.load(std::memory_order_relaxed) > 0; }
  // Whether this version computes copies of others' requests, on threads that give way to all others.
  bool is_shadow() const { return IsShadow(options_); }
  bool is_on_gpus() const { return !options_.settings.gpus.empty(); }
  // Like DeviceModel::Submit. A batch that takes less time than waking an instance's thread is computed
  // before this returns, except by a shadow version.
  absl::Status Submit(std::unique_ptr<CallShare>& share) override;
  // Like DeviceModel::Consider.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) const override {
    return queue_->Consider(traits, buckets);
  }
  int64_t MaxItemsOfRequest(int priority) const override {
    return BatchingOfQueue().MaxItemsOfRequest(priority);
  }

  // Adds to the metrics what the requests have asked for since the last call, and sets the gauges of what
  // waits and of the instances that are set aside or lost. Takes no lock that requests need.
  void RefreshGauges();

  // The longest time since a running forward pass began or last reported progress; zero if none runs.
  absl::Duration BusyFor() const;

  // ServedModelOptions::first_node.
  int first_node() const { return options_.first_node; }
  // ServedModelOptions::pinned_to.
  const std::shared_ptr<const CoreRange>& pinned_to() const { return options_.pinned_to; }

  // Notes that the model is used now, by a request that needs no pass. Any thread.
  void NoteUse() { last_used_.store(absl::ToUnixNanos(clock_->Now()), std::memory_order_relaxed); }
  // When the model was last used: when a pass began or reported progress, or NoteUse() was called; the time
  // of loading if there was none.
  absl::Time last_used() const { return absl::FromUnixNanos(last_used_.load(std::memory_order_relaxed)); }
  // Empty unless the model is one of our own networks. REQUIRES: Load() returned.
  const std::optional<PrecisionChoice>& precision() const { return precision_; }
  // Memory that the model holds on the CPU, as measured while it, or an earlier one of its kind, was loaded.
  // At least the size of its weights. REQUIRES: Load() returned.
  int64_t memory_bytes() const { return measured_.bytes; }

  // True if a pass has found its device lost (server/engine/device_lost.h).
  bool device_lost() const;

  // Another ServedModel serves this version from now on, and owns its metrics: Close() leaves them unchanged.
  void HandOver() { handed_over_ = true; }

  // Stops accepting shares, computes what is queued and joins the instances. Idempotent.
  void Close();

 private:
  absl::Status LoadNetwork();
  absl::Status ChooseItsPrecision();
  EngineOptions EngineOptionsFor(int device) const;
  absl::Status CheckEnsemble() const;
  absl::Status LoadAndWarmUp(int64_t allocated_before);
  absl::Status LoadWeights();
  absl::Status LoadOnCpu();
  // Loads the engine for `devices_`, and returns what makes its passes.
  absl::StatusOr<PassMaker> LoadEngineOnCpu();
  // The instances that fit onto the cores of a pass if each has so many threads.
  size_t InstancesBeside(int threads) const;
  // Chooses the instances and threads by trial, for settings.optimize.
  absl::Status LoadForItsGoal();
  BatcherOptions BatchingOfQueue() const;
  absl::Status MakeQueue();
  absl::Status WarmUp();
  void OpenCache();
  void WatchDrift();
  void OpenShadow();
  // Reads the weights once more, unless their checksum is known.
  ModelIdentity MakeIdentity() const;
  std::optional<PromotionState> Promotion() const;
  void StartInstances();
  void RunInstance(int index);
  // `next` is the `tiny` argument of DeviceModel::Finished.
  void Compute(int instance, Shares batch, std::optional<TinyBatch<CallShare>>* next);
  void NoteLost(int instance);
  bool AllLost() const;
  // Ends a pass that computed nothing, or not all because its GPU was lost: queues the shares that are left
  // for another instance, or ends them.
  void Retry(int instance, std::vector<FailedShare> failed, std::optional<TinyBatch<CallShare>>* next);
  void LogChanges(const DeviceModel<CallShare>::Changes& changes) const;
  void KeepToOwnCores(int index) const;
  // The node on which the instance runs; null if it may run anywhere.
  const MemoryNode* NodeOf(int index) const;
  void KeepToNode(int index) const;
  // LoadNetwork() on a thread that keeps to the node of the instances, so that the weights, which it writes
  // first, are in the memory of that node.
  absl::Status LoadOnNode();
  void SetState(ModelSnapshot::State state, std::string reason);
  void ReportStep(LoadStep::Kind kind, int64_t done = 0, int64_t of = 0) const;

  const ServedModelOptions options_;
  DeviceGroup* const group_;
  Clock* const clock_;
  Metrics* const all_metrics_;
  const std::unique_ptr<AnswerOrder> answer_order_;
  const std::shared_ptr<const Ensemble> ensemble_;

  // The device of each instance: GPU indices, or a single index for the CPU. Load() may choose how many there
  // are, and then writes it before the state becomes READY; constant afterwards.
  Devices devices_;
  // When Load() began.
  absl::Time load_start_ = absl::InfiniteFuture();
  // By device. Like the members below, written by Load() before the state becomes READY, and constant
  // afterwards. All engines hold the same model.
  std::map<int, std::unique_ptr<Engine>> engines_;
  // Threads used by one forward pass.
  int threads_;
  // What is known of the model's kind; `is_measured_` if that comes from an earlier model.
  MeasuredKind measured_;
  bool is_measured_ = false;
  // For our own networks.
  std::optional<PrecisionChoice> precision_;
  std::shared_ptr<const ModelIdentity> identity_;
  std::unique_ptr<ModelMetrics> metrics_;
  std::shared_ptr<CachedAnswers> cached_answers_;
  std::shared_ptr<CacheMetrics> cache_metrics_;
  std::unique_ptr<DriftWatch> drift_;
  std::unique_ptr<DriftMetrics> drift_metrics_;
  std::shared_ptr<Shadow> shadow_;
  std::unique_ptr<ShadowSender> shadow_sender_;
  std::unique_ptr<DeviceModel<CallShare>> queue_;
  // By instance: when its forward pass began or last reported progress, in nanoseconds since the epoch; 0
  // while idle.
  std::vector<std::atomic<int64_t>> busy_since_;

  // By instance: whether a pass has found its device lost. No later pass begins there.
  std::vector<std::atomic<bool>> lost_;

  // Requests of which a part waits for a forward pass.
  std::atomic<int64_t> waiting_requests_{0};
  // Nanoseconds since the epoch.
  std::atomic<int64_t> last_used_{0};
  std::atomic<bool> handed_over_{false};

  mutable absl::Mutex mutex_;
  ModelSnapshot::State state_ ABSL_GUARDED_BY(mutex_) = ModelSnapshot::State::kLoading;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  absl::Duration load_duration_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> instances_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
