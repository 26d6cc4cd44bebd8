// Makes served models of what a repository holds, puts them into the table, and takes them out again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/device.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/hosted_model.h"
#include "server/pipeline/model_table.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {

// One thread's, but for what says otherwise.
class ModelHost {
 public:
  struct Options {
    int64_t default_max_queue_size = 256;
    int threads_per_instance = 0;
    absl::Duration warm_up;
    bool allow_executable_models = false;
    // How many there are.
    int gpus = 0;
    ServedModelRooms rooms = {};
    // Any thread: something that was dismissed may be freed now. May be called after the host is gone.
    std::function<void()> released;
    // Whether to stop between two versions.
    std::function<bool()> closed;
  };
  // "2 of 5", for the log.
  struct Progress {
    size_t number = 1;
    size_t of = 1;
  };
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  // All must outlive it.
  ModelHost(Options options, ModelTable* table, Clock* clock, Metrics* metrics);
  // Closes.
  ~ModelHost();

  // Makes what is served of a model that which `entry` says: versions whose files changed, or are new, are
  // loaded beside what serves, and take its place once they are ready. Only if all could be loaded, what
  // `entry` does not name is dismissed. `all_anew`: as if every file had changed. Blocks. Returns the first
  // failure.
  absl::Status Apply(ModelEntry entry, const ModelStamp& stamp, bool all_anew, Progress progress);

  bool IsHosted(const std::string& name) const { return hosted_.count(name) > 0; }
  std::vector<std::string> Hosted() const;
  // Models that its steps name; of what is no ensemble, none.
  std::vector<std::string> PartsOf(const std::string& name) const;

  // No request finds the model any more. `done` is told once those that had found it are answered, and its
  // memory is free; DEADLINE_EXCEEDED at the deadline. `listed`: it stays in the table, as unloaded.
  void Dismiss(const std::string& name, bool listed, absl::Time deadline, Done done);

  // Frees what was dismissed and nobody uses any more.
  void FreeUnused();
  // Tells whose deadline is past.
  void TellLate(absl::Time now);
  // InfiniteFuture if nobody waits.
  absl::Time NextDeadline() const;

  // Any thread. How long the longest forward pass has been running.
  absl::Duration BusyFor() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The name of a model whose device is lost; empty if there is none.
  std::string LostModel() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. Device::Sweep of all of them.
  void Sweep();
  // Computes what is queued and ends every instance. Idempotent.
  void Close();

 private:
  struct Version {
    std::shared_ptr<HostedModel> hosted;
    // The files that it was made from.
    std::string stamp;
    std::string shared_stamp;
  };
  struct Model {
    std::map<int64_t, Version> versions;
    std::vector<std::string> parts;
    // Of pinned instances: the first core of the first, and how many they take.
    std::pair<int, int> cores = {0, 0};
  };
  // Who waits until all the versions of a model are freed.
  struct Farewell {
    std::string name;
    absl::Time deadline;
    // Null once it was told.
    Done done;
    size_t left = 0;
  };
  struct Leaving {
    std::shared_ptr<HostedModel> hosted;
    std::shared_ptr<Farewell> farewell;
    bool listed = false;
  };

  absl::Status LoadVersion(const ModelSettings& settings, const ModelVersion& version,
                           const ModelStamp& stamp, Progress progress, Model* model);
  ServedModelOptions OptionsOf(const ModelSettings& configured, const ModelVersion& version, Model* model);
  void LetGo(std::shared_ptr<HostedModel> hosted, std::shared_ptr<Farewell> farewell, bool listed);
  void NoteFailure(const ModelSettings& settings, int64_t version, const absl::Status& why, bool serving);
  void Free(Leaving left);
  void DropLeftOut(const ModelEntry& entry, Model* model);
  std::vector<std::shared_ptr<HostedModel>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  ModelTable* const table_;
  Clock* const clock_;
  Metrics* const metrics_;
  mutable absl::Mutex mutex_;
  // They outlive the models.
  Device cores_;
  Device gpus_;
  std::map<std::string, Model> hosted_;
  std::vector<Leaving> leaving_;
  // Of versions that could not be loaded while nothing served in their place: not ready.
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<ModelMetrics>> failed_;
  // The first that no pinned instance has.
  int next_core_ = 0;
  // All that serve or are leaving.
  std::vector<std::shared_ptr<HostedModel>> all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
