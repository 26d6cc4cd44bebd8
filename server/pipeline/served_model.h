// One version of one model while it is served: its weights, its queue, its instances' threads, its state.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/description.h"
#include "server/batching/batcher.h"
#include "server/cache/response_cache.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/answer_order.h"
#include "server/pipeline/engine.h"
#include "server/pipeline/ensemble_plan.h"
#include "server/pipeline/predict_call.h"
#include "server/repository/repository.h"

namespace saccade::server {

// What a model may use of the daemon's besides. All may be null, and must outlive it.
struct ServedModelRooms {
  // Where answers are kept, if the model asks for that.
  ResponseCache* response_cache = nullptr;
  const EnsembleRunner* ensembles = nullptr;
};

struct ServedModelOptions {
  ModelSettings settings;
  ModelVersion version;
  // Used where the model's own configuration sets none.
  int64_t default_max_queue_size = 256;
  // Cores that one forward pass may use.
  int threads_per_instance = 1;
  // It uses fewer where it is faster with them.
  bool fewer_threads = false;
  // If its instances are pinned: the first core of the first of them, among those that there are.
  int first_core = 0;
  // How long the warm-up may go on beyond the smallest and the largest batch of each bucket.
  absl::Duration warm_up = absl::Seconds(5);
  // Another one serves the same version until this one is ready: if that fails, the metrics stay the other's.
  bool takes_over = false;
  ServedModelRooms rooms = {};
  // Whether it may be a program, which is code of whoever wrote it.
  bool allow_executable_models = false;
  // What loads its engines, one for each GPU.
  std::function<absl::StatusOr<std::unique_ptr<Engine>>(const ModelSettings&, const EngineOptions&)>
      load_engine = LoadEngine;
};

// What a client may know of a model.
struct ModelSnapshot {
  enum class State { kLoading, kReady, kUnloading, kUnavailable };
  std::string name;
  int64_t version = 0;
  State state = State::kLoading;
  // Why it is unavailable; of a model that serves, why what lies in the repository could not take its place.
  std::string reason;
  int max_batch_size = 0;
  int64_t queued = 0;
  absl::Duration load_duration;
  // Complete only when ready; before that, and of an ensemble, the architecture alone.
  models::Description description;
  bool ensemble = false;
};

// Thread-safe.
class ServedModel {
 public:
  // All must outlive it; `device` is what it computes on. Loads nothing yet.
  ServedModel(ServedModelOptions options, Device* device, Clock* clock, Metrics* metrics);
  // Closes.
  ~ServedModel();

  // Reads the weights, warms up and starts the instances; blocks for as long as that takes. Called once. On
  // error the model stays UNAVAILABLE with the reason.
  absl::Status Load();

  // Whether Load would find the model in order, as far as can be told without computing: its weights are
  // there, sound, and fit the configuration. Of a model for a GPU, the configuration alone. Blocks.
  static absl::Status Check(const ModelSettings& settings, const ModelVersion& version,
                            bool allow_executable_models);

  const ModelSettings& settings() const { return options_.settings; }
  const std::string& name() const { return options_.settings.name; }
  int64_t version() const { return options_.version.version; }
  ModelSnapshot Snapshot() const;

  // OK once ready; UNAVAILABLE with the reason otherwise.
  absl::Status CheckReady() const;

  // Null unless it is an ensemble: then there is nothing to submit to, and no description.
  const std::shared_ptr<const Ensemble>& ensemble() const { return ensemble_; }

  // The rest REQUIRES: CheckReady() was OK once.
  const models::Description& description() const;
  const Engine& engine() const { return *engines_.begin()->second; }
  int max_batch_size() const { return static_cast<int>(options_.settings.batching.max_batch_size); }
  ModelMetrics* metrics() const { return metrics_.get(); }
  // Null unless answers leave in the order of their requests.
  AnswerOrder* answer_order() const { return answer_order_.get(); }
  // Null unless its answers are kept for equal requests.
  const std::shared_ptr<CachedAnswers>& cached_answers() const { return cached_answers_; }
  const std::shared_ptr<CacheMetrics>& cache_metrics() const { return cache_metrics_; }
  // As Batcher::Submit. What takes no longer than to wake an instance's thread is computed before it returns.
  absl::Status Submit(std::unique_ptr<BatchTask>& share);
  // As Batcher::Consider.
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) const {
    return batcher_->Consider(traits, buckets);
  }

  // How long the longest forward pass has been running, or has told nothing of its progress; zero if none
  // runs.
  absl::Duration BusyFor() const;

  // Whether a pass has found its device lost (server/pipeline/device_lost.h).
  bool device_lost() const { return device_lost_; }

  // Another one serves this version from here on: the metrics are its.
  void HandOver() { handed_over_ = true; }

  // Takes nothing more, computes what is queued, joins the instances. Idempotent.
  void Close();

 private:
  absl::Status LoadNetwork();
  absl::StatusOr<std::unique_ptr<Engine>> LoadEngineAt(int place) const;
  absl::Status CheckEnsemble() const;
  absl::Status LoadWeights();
  absl::Status LoadOnCpu();
  absl::Status MakeBatcher();
  absl::Status WarmUp();
  void OpenCache();
  void StartInstances();
  void RunInstance(int index);
  // `next` as Batcher::Finished has it.
  void Compute(int instance, std::vector<std::unique_ptr<BatchTask>> batch, std::optional<TinyBatch>* next);
  void KeepToOwnCores(int index) const;
  void SetState(ModelSnapshot::State state, std::string reason);

  const ServedModelOptions options_;
  Device* const device_;
  Clock* const clock_;
  Metrics* const all_metrics_;
  const std::unique_ptr<AnswerOrder> answer_order_;
  const std::shared_ptr<const Ensemble> ensemble_;

  // Of its instances: GPUs, or the CPU, which is one place.
  const Places places_;
  // Written by Load before the state becomes READY, never after. By place: all compute the same, and any of
  // them knows what that is.
  std::map<int, std::unique_ptr<Engine>> engines_;
  // Of one pass.
  int threads_ = 1;
  std::unique_ptr<ModelMetrics> metrics_;
  std::shared_ptr<CachedAnswers> cached_answers_;
  std::shared_ptr<CacheMetrics> cache_metrics_;
  std::unique_ptr<Batcher> batcher_;
  // When each instance's forward pass began or last told of progress, in nanoseconds since the epoch; 0 while
  // idle.
  std::unique_ptr<std::atomic<int64_t>[]> busy_since_;

  std::atomic<bool> handed_over_{false};
  std::atomic<bool> device_lost_{false};

  mutable absl::Mutex mutex_;
  ModelSnapshot::State state_ ABSL_GUARDED_BY(mutex_) = ModelSnapshot::State::kLoading;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  absl::Duration load_duration_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> instances_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
