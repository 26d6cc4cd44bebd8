// Owns the served models: loads the versions of a repository's entries, enters them in the ModelTable, where
// requests find them, replaces and frees them. The Catalog decides when.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/batching/device_group.h"
#include "server/catalog/catalog_options.h"
#include "server/catalog/instance_trial.h"
#include "server/catalog/measured_kinds_file.h"
#include "server/catalog/model_table.h"
#include "server/catalog/pinned_cores.h"
#include "server/catalog/served_model.h"
#include "server/core/clock.h"
#include "server/logging/log_once.h"
#include "server/metrics/metrics.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {

// Not thread-safe, except for the functions marked "any thread".
class ModelHost {
 public:
  struct Hooks {
    // Called on any thread when a dismissed model may be freed; possibly after the host was destroyed.
    std::function<void()> released;
    // Checked between two versions: if it returns true, loading stops.
    std::function<bool()> closed;
    // Called on the thread of a load ahead when the load has ended.
    std::function<void()> ended_ahead = nullptr;
    // ServedModelDeps::check_ensemble.
    std::function<absl::Status(const Ensemble&)> check_ensemble = nullptr;
    // ServedModelDeps::shadow_decided.
    std::function<void()> shadow_decided = nullptr;
  };
  // Position for the log: "2 of 5".
  struct Progress {
    size_t number = 1;
    size_t of = 1;
  };
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  // All pointers must outlive the host.
  ModelHost(const CatalogOptions* options, Hooks hooks, ModelTable* table, Clock* clock, Metrics* metrics);
  // Calls Close().
  ~ModelHost();

  // Makes `entry` the served state of its model. Versions whose files are new or have changed are loaded
  // while the old ones serve, and replace them once they are ready. Versions that `entry` does not name are
  // dismissed only if all others could be loaded. `all_anew` treats every file as changed. Blocks. Returns
  // the first failure.
  absl::Status Apply(ModelEntry entry, const ModelStamp& stamp, bool all_anew, Progress progress);

  // Whether LoadAhead() loads the model on a single thread: its kind is measured, it is not hosted yet, has
  // one version, and needs no cores or GPU of its own. Blocks on the file system as KindOf() does.
  bool CanLoadAhead(const ModelEntry& entry);
  // Memory that the versions which Apply() would load are expected to hold: twice the size of their weights,
  // or what their kind was measured to hold, if that is more. Blocks on the file system.
  int64_t ExpectedBytes(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew);
  // Whether the model is hosted, and Apply() would load no version.
  bool IsUnchanged(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew) const;
  // Lists the versions that Apply() would load as failed for the reason `why`. REQUIRES: the model is hosted.
  void NoteFailures(const ModelEntry& entry, const ModelStamp& stamp, bool all_anew, const absl::Status& why);
  // Starts to load the versions of `entry` on threads of their own, for an Apply() of the same files, which
  // then only waits for them; a graph or a program whose load ahead failed is loaded again by Apply(), alone.
  // Skips versions that must be measured, which is done alone, and adds what they are expected to hold to
  // `skipped_bytes`. May be called again. Returns false if a version was not started because the models that
  // are loaded, those that are loaded ahead, `skipped_bytes` and the version exceed max_model_bytes, because
  // MaxLoads() versions are loaded ahead and not taken yet, because the system has no thread left, or because
  // Hooks::closed returned true. Models that are wanted less should then not be loaded ahead either: they
  // would take what this one waits for. Does not wait for loads, but blocks on the file system as KindOf()
  // does.
  bool LoadAhead(const ModelEntry& entry, const ModelStamp& stamp, int64_t* skipped_bytes);
  // The versions of the model that are loaded ahead, ascending.
  std::vector<int64_t> AheadOf(const std::string& name) const;
  // Memory that the models that are loaded ahead are expected to hold, all but `except`.
  int64_t MemoryAhead(const std::string& except = "") const;
  // Whether no load ahead of the model runs.
  bool HasEndedAhead(const std::string& name) const;
  // Frees what was loaded ahead of the model and not taken. Waits for the loads that run.
  void DropAhead(const std::string& name);
  // The same for all models but `except`.
  void DropAllAhead(const std::string& except);
  // Lists the versions of `entry` as loading, unless they are served.
  void ListLoading(const ModelEntry& entry);

  // A trial of the threads of a version's passes while it serves.
  struct ThreadTrial {
    std::string model;
    int64_t version = 0;
    // Set once it was measured: the load of the version that served, if another number is better for it, and
    // that number.
    std::weak_ptr<ServedModel> measured = {};
    std::optional<InstanceSplit> best = std::nullopt;
  };
  // A trial for each version that is hosted.
  std::deque<ThreadTrial> ThreadTrials() const;
  // Makes the next step of the trial: measures with the files loaded once more, or replaces the version by
  // another load of them, with the number that was found better. Returns whether that step is still to be
  // made. `stamp` is of the model's files as they are now: a version whose files have changed is not tried,
  // and neither are models with a shadow version, whose comparison would begin anew, models that hold more
  // than 512 MiB or would not fit into max_model_bytes once more, and all models on a machine with several
  // nodes of memory. Counts the trial by its result if it was measured. Blocks.
  bool TryThreads(const ModelStamp& stamp, ThreadTrial* trial);

  bool IsHosted(const std::string& name) const { return hosted_.count(name) > 0; }
  // Whether this version serves, and was loaded from the files with this stamp.
  bool IsLoadedFrom(const std::string& name, int64_t version, const ModelStamp& stamp) const;
  std::vector<std::string> Hosted() const;
  // The models that its steps name; empty unless it is an ensemble.
  std::vector<std::string> PartsOf(const std::string& name) const;

  // Hides the model from new requests. `done` is called with OK once earlier requests are answered and the
  // memory is freed, or with DEADLINE_EXCEEDED at the deadline. If `listed_as` is set, the model stays in the
  // table, unavailable for that reason.
  void Dismiss(const std::string& name, std::optional<std::string> listed_as, absl::Time deadline, Done done);

  // When the model, or for an ensemble one of its parts, was last used (ServedModel::last_used). A model that
  // a request holds, because it is decoded, waits or is computed, is used now.
  absl::Time LastUsed(const std::string& name, int depth = 0) const;
  // How long the loads of its versions took, together.
  absl::Duration LoadTimeOf(const std::string& name) const;
  // Memory that the hosted versions of the model hold.
  int64_t MemoryOf(const std::string& name) const;
  // Memory that all models hold, with MemoryLeaving().
  int64_t MemoryInUse() const { return MemoryHosted() + MemoryLeaving(); }
  int64_t MemoryHosted() const;
  // Memory of versions that were dismissed or replaced and that requests still use. It is freed once these
  // have ended.
  int64_t MemoryLeaving() const;
  // When the last of these was dismissed or replaced; InfinitePast if there are none.
  absl::Time LastLeft() const;

  // Frees dismissed models that are no longer used. Returns whether there were any.
  bool FreeUnused();
  // Calls `done` of the dismissals whose deadline has passed.
  void ReportLate(absl::Time now);
  // The earliest deadline of a pending dismissal; InfiniteFuture if there is none.
  absl::Time NextDeadline() const;

  // Any thread. The longest time since a running forward pass began or last reported progress; zero if none
  // runs. Shadow versions do not count.
  absl::Duration BusyFor() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. The name of a model whose device is lost; empty if there is none.
  std::string LostModel() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread. Calls DeviceGroup::Sweep() of the cores and of the GPUs, and TrySweep() of the idle cores.
  void Sweep();
  // Any thread. Adds the demand of all models since the last call (Scheduler::TakeDemand) to the metrics.
  void CountDemand();
  // Computes what is queued and stops every instance. Idempotent.
  void Close();

 private:
  // A served model, and whether it is still in use. Requests hold handles, which do not own the model:
  // whichever thread drops the last one, the model is destroyed on the catalog's thread and never on one of
  // its own threads.
  struct Held {
    std::unique_ptr<ServedModel> model;
    // Given to requests; null once the model is dismissed.
    std::shared_ptr<ServedModel> handle;
    // Set when the last handle was dropped, on any thread.
    std::shared_ptr<std::atomic<bool>> unused;
  };
  struct Version {
    std::shared_ptr<Held> loaded;
    // The stamps of the files it was loaded from.
    std::string stamp;
    std::string shared_stamp;
  };
  struct Model {
    std::map<int64_t, Version> versions;
    std::vector<std::string> parts;
  };
  // A dismissal that waits until all versions of the model are freed.
  struct Dismissal {
    std::string name;
    absl::Time deadline;
    // Null once it was called.
    Done done;
    size_t left = 0;
  };
  struct Leaving {
    std::shared_ptr<Held> loaded;
    absl::Time since = absl::InfinitePast();
    // Belong to those who wait until it is freed.
    std::vector<std::shared_ptr<Dismissal>> dismissals = {};
    std::optional<std::string> listed_as = std::nullopt;
  };

  // A version that is being loaded ahead. Its thread writes `status`.
  struct Ahead {
    std::unique_ptr<ServedModel> served;
    // The stamp of the files that it is loaded from.
    ModelStamp stamp;
    absl::Status status;
    int64_t bytes = 0;
    // Set after `status` was written.
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  // The version as it serves; null if it is not to be tried.
  std::shared_ptr<ServedModel> FindToTry(const ThreadTrial& trial, const ModelStamp& stamp, Model* model);
  // Sets `best` and `measured` of the trial if another number is better.
  absl::Status MeasureThreads(const std::shared_ptr<ServedModel>& serving, Model* model, ThreadTrial* trial);
  // On failure the version goes on as it is.
  absl::Status ChangeThreads(const ServedModel& serving, const InstanceSplit& split, Model* model);
  // Has requests find the version, in place of an earlier load of it. Its stamps are still to be set.
  Version& Enter(const std::string& name, int64_t number, std::unique_ptr<ServedModel> served, Model* model);
  // The result of loading a version, ahead or now.
  absl::StatusOr<std::unique_ptr<ServedModel>> Loaded(const ModelSettings& settings,
                                                      const ModelVersion& version, const ModelStamp& stamp,
                                                      Model* model);
  // Waits for all loads ahead. Their results are kept.
  void AwaitAhead();
  absl::Status LoadVersion(const ModelSettings& settings, const ModelVersion& version,
                           const ModelStamp& stamp, Progress progress, Model* model);
  DeviceGroup* DevicesOf(const ServedModelOptions& options);
  static bool IsFrom(const Model& model, int64_t version, const ModelStamp& stamp);
  // Whether the version serves, with the same files and in the same role: as a shadow version, as one that is
  // compared with a shadow version, or without any.
  static bool IsSame(const Model& model, const ModelSettings& settings, const ModelVersion& version,
                     const ModelStamp& stamp);
  // The measurements of the version's kind; nullopt for pinned instances, which get their cores when their
  // model is applied.
  std::optional<MeasuredKind> KnownKind(const ModelSettings& settings, const ModelVersion& version);
  // Memory that a version is expected to hold. `known` is what was measured of its kind.
  static int64_t ExpectedOf(const ModelVersion& version, const std::optional<MeasuredKind>& known);
  // Calls `load`. The system may have no thread left, or no memory: the exception becomes an error.
  static absl::Status Safely(absl::FunctionRef<absl::Status()> load);
  // A version that is made of the options and loaded.
  absl::StatusOr<std::unique_ptr<ServedModel>> Made(ServedModelOptions options);
  // Everything but the node, which TakeNode() sets. `model` may be null unless settings.pin.
  ServedModelOptions OptionsOf(const ModelSettings& configured, const ModelVersion& version,
                               const Model* model);
  // The cores of `count` pinned instances' threads. A version of `model` that serves shares its cores, if
  // they suffice.
  std::shared_ptr<const CoreRange> CoresFor(const Model& model, int count);
  // Models take turns on the nodes, so call it only for a model that is then loaded with these options.
  void TakeNode(ServedModelOptions* options);
  std::shared_ptr<Held> Hold(std::unique_ptr<ServedModel> model) ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGo(std::shared_ptr<Held> loaded, std::shared_ptr<Dismissal> dismissal,
             std::optional<std::string> listed_as = std::nullopt);
  // "version 1, 3", or "nothing".
  static std::string OthersServing(const Model& model);
  void NoteFailure(const ModelSettings& settings, int64_t version, const absl::Status& why,
                   const Model& model);
  void Free(Leaving left);
  // The dismissals that nobody was told the end of.
  std::set<std::shared_ptr<Dismissal>> OpenDismissals() const;
  // Lets each label name its new version, unless that does not serve yet and the label's earlier one does.
  void MoveLabels(const ModelSettings& settings, const Model& model);
  // Tells the versions that are compared with a shadow version which load of it serves, and what was decided
  // about its files.
  static void AdoptDecision(const ModelSettings& settings, const Model& model);
  void DropLeftOut(const ModelEntry& entry, Model* model);
  std::vector<std::shared_ptr<Held>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  const CatalogOptions& options_;
  const Hooks hooks_;
  ModelTable* const table_;
  Clock* const clock_;
  Metrics* const metrics_;
  mutable absl::Mutex mutex_;
  // Declared before the models, which they must outlive.
  MeasuredKindsFile kinds_file_;
  ModelKinds kinds_;
  LogOnce log_once_;
  DeviceGroup cores_;
  DeviceGroup gpus_;
  // A second group of the same cores, for shadow versions: their passes delay no other model, even if they
  // hang. Their threads run only when the cores are idle.
  DeviceGroup idle_cores_;
  std::map<std::string, Model> hosted_;
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<Ahead>> ahead_;
  std::vector<Leaving> leaving_;
  // Metrics, marked not ready, of versions that failed to load while no older load of them served.
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<ModelMetrics>> failed_;
  PinnedCores pinned_cores_;
  // The node of the next model, modulo their number.
  int next_node_ = 0;
  // All models that serve or have been dismissed but not freed.
  std::vector<std::shared_ptr<Held>> all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
