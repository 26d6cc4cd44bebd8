// Decides when models are loaded, replaced and unloaded: at start, when their files change, or on request.
// The ModelHost loads and unloads them, the ModelTable lists the versions that serve, and a ServedModel is
// one version.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/catalog/backoff.h"
#include "server/catalog/catalog_options.h"
#include "server/catalog/core_contention.h"
#include "server/catalog/load_plan.h"
#include "server/catalog/load_queue.h"
#include "server/catalog/model_host.h"
#include "server/catalog/model_table.h"
#include "server/catalog/promotions.h"
#include "server/catalog/served_model.h"
#include "server/core/clock.h"
#include "server/engine/ready_model.h"
#include "server/logging/log.h"
#include "server/metrics/metrics.h"
#include "server/repository/settling.h"

namespace saccade::server {

// Thread-safe. One thread of its own reads the repositories, and decides what is loaded and unloaded;
// requests never wait for it. Models whose times are known are loaded at the same time, on threads of their
// own (ModelHost::LoadAhead). Those that are measured, ensembles, and models that are replaced are loaded
// alone by the catalog's thread. It also tries the threads of passes again, alone, while no load is wanted. A
// model that is replaced serves until its successor is ready, and continues to serve if loading the successor
// fails.
class Catalog final : public ModelFinder {
 public:
  // Called on the catalog's thread; must not block for long.
  struct Events {
    // Whether any version of the model serves. Called when that changes, and once for each model at start.
    std::function<void(const std::string& model, bool ready)> model_changed = nullptr;
    // CheckAllReady() may have changed; called after model_changed.
    std::function<void()> all_ready_changed = nullptr;
    // Called once, after all models to be loaded at start have been tried, with the first failure or OK.
    std::function<void(const absl::Status& first_failure)> loaded = nullptr;
  };
  // Called on the catalog's thread; on the caller's if the load or unload is rejected at once; or on the
  // thread that calls Close().
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  Catalog(CatalogOptions options, Clock* clock, Metrics* metrics);
  // Calls Close().
  ~Catalog() override;

  // Lists the models in the repositories. Blocks on the file system. Fails only if a repository cannot be
  // read, if two of them hold a model of the same name, or if `load_at_start` names an unknown model. Call
  // once.
  absl::Status Scan();

  // Starts to load the models and returns. Call once, after Scan().
  void Start(Events events);

  // Reads the model again, with `config_json` instead of its config.pbtxt if given, and loads what has
  // changed. That configuration applies until another order loads or unloads the model, or config.pbtxt or
  // another file that the versions share changes and the model is read again; also if the model is unloaded
  // meanwhile because it is idle. For an ensemble, first loads those of its models that are not loaded.
  // `done` is called with OK once the model serves. Errors include FAILED_PRECONDITION if the control mode is
  // not kExplicit or the model could not be loaded, and RESOURCE_EXHAUSTED if too many loads and unloads are
  // pending.
  void Load(const std::string& name, std::optional<std::string> config_json, Done done);

  // Hides the model from new requests at once. `done` is called with OK once earlier requests are answered
  // and the model's memory is freed, or with DEADLINE_EXCEEDED after unload_timeout, in which case it is
  // freed later. Waits for a load of the model that runs or is the next to begin, and for its earlier loads
  // and unloads, but not for those of ensembles that use it or of models that it uses.
  // `with_dependents` also unloads an ensemble's models unless another loaded ensemble uses them.
  void Unload(const std::string& name, bool with_dependents, Done done);

  // Waits for a model that requests load (LoadQueue::Await).
  bool AwaitModel(const CallHead& call, Resume& resume) const override;
  void WantModel(const CallHead& call) const override;

  // See ModelTable.
  absl::StatusOr<std::shared_ptr<ServedModel>> FindReady(absl::string_view name, int64_t version) const {
    return table_.FindReady(name, version);
  }
  absl::StatusOr<std::shared_ptr<ReadyModel>> FindModel(absl::string_view name,
                                                        int64_t version) const override {
    return table_.FindReady(name, version);
  }
  absl::StatusOr<ModelSnapshot> Describe(absl::string_view name, int64_t version) const {
    return table_.Describe(name, version);
  }
  absl::StatusOr<int64_t> VersionOf(absl::string_view name, absl::string_view version) const {
    return table_.VersionOf(name, version);
  }
  std::vector<int64_t> ServedVersions(absl::string_view name) const { return table_.ServedVersions(name); }
  std::vector<ModelSnapshot> List() const { return table_.List(); }
  uint64_t generation() const { return table_.generation(); }
  std::vector<IndexEntry> Index() const { return table_.Index(); }

  // The first model that should have been loaded at start and is not served, or OK. Models that were unloaded
  // since are ignored. An empty repository is ready.
  absl::Status CheckAllReady() const { return table_.CheckRequired(); }
  // The names of all such models.
  std::vector<std::string> Missing() const { return table_.Missing(); }

  // The longest time since a running forward pass began or last reported progress; zero if none runs. Shadow
  // versions do not count.
  absl::Duration BusyFor() const { return host_.BusyFor(); }
  // Any thread. Whether a load at start has failed; known before Events::loaded is called.
  bool HasFailedAtStart() const { return has_failed_at_start_; }
  // The name of a model whose device no longer responds; empty if there is none.
  std::string LostModel() const { return host_.LostModel(); }

  // Updates the models' gauges of what is queued. Called by the metrics' scrape hook.
  void RefreshGauges();

  // Adds the demand of all models since the last call (Scheduler::TakeDemand) to the metrics.
  void CountDemand() { host_.CountDemand(); }

  // Calls DeviceGroup::Sweep() of the CPU and GPU devices, and LoadQueue::Sweep(), and passes decisions about
  // shadow versions on to the catalog's thread. Measures the use of the cores by other processes every ten
  // seconds.
  void Sweep();

  // Rejects pending and further loads and unloads, and gives up loads in progress at their next step: those
  // who have ordered them get an error once they have ended, and their models do not serve. Unloads in
  // progress are completed, and models that serve go on serving. Does not block. Idempotent.
  void RefuseLoads();

  // Calls RefuseLoads(), computes what is queued and stops all instances. Blocks until the loads in progress
  // have ended. Idempotent.
  void Close();

 private:
  // A failed load that is tried again without being asked for.
  struct Retry {
    std::string repository;
    Backoff backoff;
    absl::Time at;
  };

  // The reason why a model that was never requested is not served.
  std::string NotLoaded() const;

  // A task for the catalog's thread. `cancelled` is OK, or the error because of which it must not run.
  using Job = absl::AnyInvocable<void(absl::Status cancelled) &&>;
  // A load or an unload that a client has asked for. Those of one model run in their order, and not while the
  // model is being loaded.
  struct ModelOrder {
    std::string model;
    bool is_load = false;
    Job job;
  };

  // Wakes the thread. Shared, because models' handles, which set `released`, may outlive the catalog.
  struct Orders {
    absl::Mutex mutex;
    std::vector<ModelOrder> pending ABSL_GUARDED_BY(mutex);
    // Set when an order was added, or all were rejected.
    bool changed ABSL_GUARDED_BY(mutex) = false;
    // Set when a load on a thread of its own has ended.
    bool load_ended ABSL_GUARDED_BY(mutex) = false;
    // Set by RefuseLoads(): no order is accepted or run.
    bool refusing ABSL_GUARDED_BY(mutex) = false;
    // Ends the thread.
    bool closed ABSL_GUARDED_BY(mutex) = false;
    // Set when the last handle of a dismissed model was dropped.
    bool released ABSL_GUARDED_BY(mutex) = false;
    // Set when requests wait for a model to be loaded.
    bool wanted ABSL_GUARDED_BY(mutex) = false;
    // Set when a shadow version was promoted or refused.
    bool decided ABSL_GUARDED_BY(mutex) = false;
    // Set when other processes have used more or less of the cores for long.
    bool contention_changed ABSL_GUARDED_BY(mutex) = false;
    // Like `decided`, set by a thread that may not take the mutex; Sweep() passes it on.
    std::atomic<bool> just_decided{false};
  };

  ModelHost::Hooks HostHooks();
  bool refusing() const;
  void Order(const std::string& model, bool is_load, Job job);
  bool IsWanted(const std::string& name) const;

  // The functions below run on the catalog's thread.
  void Run();
  // Runs `action`, and returns whether it ended without an exception, which is logged.
  static bool Guard(absl::FunctionRef<void()> action);
  // The same, and sets `failed_` after an exception.
  void Try(absl::FunctionRef<void()> action);
  // Placeholder status of an action that threw; needs no memory.
  static absl::Status FailureWithoutText();
  // Status for orders and loads that Close() prevents from starting.
  static absl::Status Closing();
  // Returns the first failure.
  absl::Status LoadAtStart();
  // A model's files as they were read, and their stamp from before.
  struct ReadFiles {
    absl::StatusOr<ModelStamp> stamp;
    absl::StatusOr<ModelEntry> entry;
  };
  // A load that an order, a request or a retry has asked for.
  struct Loading {
    std::string repository = {};
    std::string name;
    // Whether an order asks for this load, and not a request or a retry.
    bool is_ordered = false;
    // The configuration that came with an order; nullopt for the repository's. Of a load that no order asks
    // for, it is an earlier order's, and is set when the load begins.
    std::optional<std::string> config_json = std::nullopt;
    // Called with the result.
    Done ended;
    bool is_retry = false;
    LogCall call = {};
    // Whether any version was loaded before.
    bool was_hosted = false;
    // Set when the load begins.
    ReadFiles files = {absl::UnknownError(""), absl::UnknownError("")};
    absl::Time start = absl::InfiniteFuture();
    // When the load fails if models that were unloaded still hold the memory that it needs. InfiniteFuture
    // unless it waits for that.
    absl::Time give_up = absl::InfiniteFuture();
  };
  // A model's name, and its repository.
  using Located = std::pair<std::string, std::string>;
  // Loads `wanted[i]`. `ahead` holds the files of the models from i on that were read, and then of those
  // behind it.
  absl::Status LoadOne(const std::vector<Located>& wanted, size_t i, std::deque<ReadFiles>& ahead);
  ReadFiles Read(const std::string& repository, const std::string& name,
                 const std::optional<std::string>& config_json) const;
  absl::StatusOr<std::string> RepositoryOf(const std::string& name) const;
  // `depth` is the number of ensembles around the model. `config_json` as in Loading.
  absl::Status Apply(const std::string& repository, const std::string& name, ReadFiles files,
                     const std::optional<std::string>& config_json, ModelHost::Progress progress, int depth);
  // Notes which files of the model are applied. Returns the error of reading them, which it reports.
  absl::Status Note(const std::string& repository, const std::string& name, const ReadFiles& files);
  // Lists the model as unavailable, with the reason, and logs that.
  void ReportUnavailable(const std::string& name, const absl::Status& why);
  // Whether all files of the model count as changed, because they do not reflect its configuration.
  bool IsAnew(const std::string& name, const std::optional<std::string>& config_json) const {
    return config_json.has_value() || overridden_.count(name) > 0;
  }
  // The configuration of a load that a request, a retry or an ensemble asks for: the one that came with the
  // last order, if it still applies (Load), or nullopt for the repository's. Blocks on the file system.
  std::optional<std::string> OrderedConfig(const std::string& name) const;
  // Makes the files the served state of the model, for which there is room.
  absl::Status Host(const std::string& name, ReadFiles files, const std::optional<std::string>& config_json,
                    ModelHost::Progress progress);
  absl::Status Apply(const std::string& repository, const std::string& name,
                     const std::optional<std::string>& config_json, ModelHost::Progress progress, int depth);
  absl::Status LoadByName(const std::string& name, int depth);
  absl::Status LoadParts(const ModelSettings& settings, int depth);
  void DoUnload(const std::string& name, bool with_dependents, Done done);
  std::vector<std::string> WithDependents(const std::string& name) const;
  void RescanAll();
  void Rescan(const std::string& repository);
  // Removes the models of a repository that has become empty which another repository holds. The next scans
  // load them from there. If a volume was unmounted, a copy that can be read takes the place of the files
  // that cannot, as at the next start.
  void RemoveMoved(const std::string& repository);
  void Remove(const std::string& name);
  // A model is kept if no request would load it again, or if an ensemble needs it.
  std::vector<LoadedModel> LoadedModels() const;
  // Unloads the least recently used models until `bytes` more fit into max_model_bytes. Never unloads `name`,
  // which needs them. FAILED_PRECONDITION if that is not possible; nothing is unloaded then. Does not wait
  // for models that are unloaded and still in use. If these are late (IsRoomLate), unloads others for what
  // they hold; UNAVAILABLE (StillHeld) if only they are in the way.
  absl::Status MakeRoom(const std::string& name, int64_t bytes);
  // Whether the model, which is expected to hold `bytes`, fits also while the models that were unloaded and
  // that requests still use hold their memory.
  bool HasRoom(const std::string& name, int64_t bytes) const;
  // Waits for such memory, after MakeRoom(). The thread frees what is no longer used and answers late unloads
  // meanwhile, and does nothing else. Calls MakeRoom() once more at RoomDeadline(), and returns its error if
  // there can be no room. UNAVAILABLE when the daemon ends.
  absl::Status AwaitRoom(const std::string& name, int64_t bytes);
  // When loads cease to wait for such memory. A pass that takes minutes, or hangs, would otherwise keep all
  // other loads waiting. REQUIRES: HasRoom() returned false.
  absl::Time RoomDeadline() const;
  // Whether a load that waits until `give_up` at most has ceased to wait for such memory, which is still
  // held. What holds it then counts like a model that cannot be unloaded.
  bool IsRoomLate(absl::Time give_up = absl::InfiniteFuture()) const;
  absl::Status StillHeld(int64_t bytes) const;
  void UnloadIdle(const std::string& name, absl::string_view why);
  // Frees models that were unloaded and are no longer in use.
  void FreeUnused();
  // Unloads models that were not used for idle_unload, and returns when to look again.
  absl::Time UnloadIdle();
  // Keeps what was decided about shadow versions, and makes promoted ones answer.
  void ApplyDecisions();
  void ApplyDecision(const ServedModel& replaced, GateDecision decision);
  // Any thread. Wakes the catalog's thread if the threads of passes are to be tried again.
  void WatchContention() ABSL_LOCKS_EXCLUDED(contention_mutex_);
  // Begins the loads that may run now. Without any, makes the next step of a trial of threads.
  void StartLoads();
  // Chooses the load that begins next, and sets `next_`, which stays empty if the one that was chosen has
  // ended already. Returns false if there is none to choose. Retries go first; orders and requests take
  // turns.
  bool PickNext();
  bool PickRetry();
  bool PickOrder();
  bool PickWanted();
  // Makes it `next_`, or ends it with an error if no repository has the model. Sets its repository.
  void Choose(Loading loading);
  enum class Begun { kBeside, kAlone, kWaits };
  // Begins or runs the load `next_`, unless it has to wait for others to end.
  Begun BeginNext();
  // How a load begins.
  struct LoadStart {
    // kNothing: there is nothing to load, or the files cannot be read, so it ends at once, beside all others.
    // kUnknown: that could not be found out.
    enum How { kUnknown, kWaits, kAlone, kBeside, kNothing };
    How how = kUnknown;
    // For kBeside and kAlone: the plan, which is an error if there can be no room, and the memory that is
    // expected. A load that runs alone finds the error itself.
    absl::StatusOr<LoadPlan> plan = LoadPlan();
    int64_t bytes = 0;
  };
  // Also sets the configuration, the files, and whether the model is hosted.
  LoadStart PlanStart(Loading& loading);
  // Unloads models for a load that may begin. It waits if there is no room yet, and gets an error as its plan
  // if it has waited for too long.
  void TakeRoom(Loading& loading, LoadStart& start);
  // Unloads what the plan says.
  void UnloadFor(const Loading& loading, const LoadPlan& plan);
  bool LoadsNothing(const Loading& loading) const;
  // Applies files that need no load, or reports that they cannot be read.
  void EndAtOnce(Loading loading);
  // `plan` is an error if there can be no room for the model.
  void BeginBeside(Loading loading, const absl::StatusOr<LoadPlan>& plan, int64_t bytes);
  void LoadAlone(Loading loading);
  // Makes the next step of the first trial in `thread_trials_`, alone, unless a load runs.
  void TryThreadsAgain();
  // Ends the loads whose threads have ended.
  void EndLoads();
  // Waits for all loads on threads of their own, and ends them.
  void AwaitLoads();
  // Waits for the load, makes the model serve, and reports the result.
  void EndLoad(const std::string& name);
  void Report(Loading loading, const absl::Status& loaded);
  // Rejects `next_`.
  void RejectNext();
  // Ends the wait for models that were loaded by an order, or as part of an ensemble.
  void ResumeServed();
  // Whether the model's load runs, or is the next to begin.
  bool IsLoading(const std::string& name) const;
  // Takes the first pending load or unload of a model that is not being loaded and has no earlier one
  // pending.
  std::optional<Job> TakeOrder(bool is_load);
  void RunUnloads();
  // Follows a load of a model that is wanted without a request: plans the next attempt if it failed.
  void PlanRetry(const std::string& repository, const std::string& name, const absl::Status& loaded);
  void StopRetrying(const std::string& name);
  // When to make the next attempt; InfiniteFuture while it has to wait for a load that runs.
  absl::Time NextRetry() const;
  void ReportChanges();
  // Tells which models have begun or ceased to serve.
  void ReportModels();

  const CatalogOptions options_;
  Clock* const clock_;
  const std::shared_ptr<Orders> orders_ = std::make_shared<Orders>();
  ModelTable table_;
  const std::unique_ptr<LoadQueue> load_queue_;
  ModelHost host_;
  Events events_;
  std::thread thread_;

  // The names in each repository at the last scan.
  std::map<std::string, std::set<std::string>> names_;
  // What was applied of each repository.
  std::map<std::string, Settling> settling_;
  // By model, the repository from which it was last applied.
  std::map<std::string, std::string> applied_from_;
  Promotions promotions_;
  // By model, the files that a shadow version and the version that it may replace were loaded from.
  std::map<std::string, ModelStamp> tried_files_;
  // A configuration that came with an order.
  struct Ordered {
    std::string config_json;
    // ModelStamp::shared of the files at that time.
    std::string shared_stamp;
  };
  // By model, of which a version was loaded with a configuration from an order: the last that was loaded
  // without a failure, nullopt if there is none.
  std::map<std::string, std::optional<Ordered>> overridden_;
  // Repositories that can no longer be read.
  std::set<std::string> vanished_;
  Metrics* const metrics_;
  // ModelHost::MemoryInUse, for other threads.
  std::atomic<int64_t> memory_in_use_{0};
  std::atomic<bool> has_failed_at_start_{false};
  // By model, the attempts still to be made.
  std::map<std::string, Retry> retries_;
  // The models of the steps of ensembles whose parts are being loaded, once for each step.
  std::multiset<std::string> parts_in_load_;
  // The loads that run. Those on threads of their own are also in `loading_`.
  RunningLoads running_;
  std::map<std::string, Loading> loading_;
  // The load that begins next. It may have to wait until others have ended; none begins before it.
  std::optional<Loading> next_;
  // Whether `next_` has to wait until a load ends, or until memory is freed.
  bool next_waits_ = false;
  // Set when the next turn may follow at once: there may be loads to begin, or orders that had to wait.
  bool again_ = true;
  // Whether requests choose the next load, or orders do.
  bool requests_first_ = false;
  // Set when the thread itself has loaded models, for which requests may wait.
  bool applied_here_ = false;
  // Something failed in this turn. What remains to be done is then not tried again at once.
  bool failed_ = false;
  // Versions whose threads are still to be tried again.
  std::deque<ModelHost::ThreadTrial> thread_trials_;
  absl::Mutex contention_mutex_;
  ContentionChange contention_change_ ABSL_GUARDED_BY(contention_mutex_);
  absl::Time next_contention_at_ ABSL_GUARDED_BY(contention_mutex_) = absl::InfinitePast();
  // By model, the value last passed to model_changed.
  std::map<std::string, bool> reported_;
  // What CheckAllReady() was at the last report.
  std::optional<bool> reported_all_ready_;
};

}  // namespace saccade::server
