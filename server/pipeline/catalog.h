// The models of the repositories while the daemon runs: loaded, looked up, replaced, unloaded.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/model_host.h"
#include "server/pipeline/model_table.h"
#include "server/pipeline/served_model.h"
#include "server/repository/settling.h"

namespace saccade::server {

// Who decides what is loaded.
enum class ModelControl {
  // All at start, and nothing after it.
  kNone,
  // All at start, and then what is seen to change in the repositories.
  kPoll,
  // What the command line names at start, and then what Load and Unload ask for.
  kExplicit,
};

struct CatalogOptions {
  std::vector<std::string> repositories;
  ModelControl control = ModelControl::kNone;
  // How often the repositories are looked at. A change is acted on (kPoll) when two looks have seen it alike.
  absl::Duration poll_interval = absl::Seconds(15);
  // kExplicit: loaded at start; "*" is all there are.
  std::vector<std::string> load_at_start = {};
  // ReadOptions::complete.
  bool complete_configurations = true;
  // How long an Unload waits for requests that were in flight before it says that they still are.
  absl::Duration unload_timeout = absl::Seconds(30);
  int64_t default_max_queue_size = 256;
  // Cores that one forward pass may use; 0 divides the machine's cores by the model's instances.
  int threads_per_instance = 0;
  // How long a model's warm-up may go on beyond the smallest and the largest batch of each bucket.
  absl::Duration warm_up = absl::Seconds(5);
  // Whether programs, which are code of whoever wrote them, may be loaded.
  bool allow_executable_models = false;
  // How many there are.
  int gpus = 0;
  // What models may use besides. All must outlive the catalog.
  ServedModelRooms rooms = {};
};

// Thread-safe. Repositories are read, and models loaded and unloaded, on a thread of its own, one after the
// other; requests never wait for it. What is replaced serves until its successor is ready, and stays if that
// fails.
class Catalog {
 public:
  // Called on the catalog's thread; must not block for long.
  struct Events {
    // Whether any version of the model serves; told when that changes, and once for each model at start.
    std::function<void(const std::string& model, bool ready)> model_changed = nullptr;
    // Once: everything that is to be there at start was tried. The first failure, or OK.
    std::function<void(const absl::Status& first_failure)> loaded = nullptr;
  };
  // Called exactly once, on the catalog's thread, or on the caller's for what is refused at once.
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  Catalog(CatalogOptions options, Clock* clock, Metrics* metrics);
  // Closes.
  ~Catalog();

  // Lists what is in the repositories; blocks on the file system. An error only if a repository cannot be
  // read, if two of them hold a model of one name, or if `load_at_start` names a model that is in none. Once.
  absl::Status Scan();

  // Begins to load it, and returns. Once, after Scan.
  void Start(Events events);

  // Reads the model anew, by `config_json` in place of its config.pbtxt if there is one, and loads what
  // changed of it; of an ensemble, first its models that are not loaded. OK once it serves. Of the errors,
  // FAILED_PRECONDITION says that the repository is not controlled by requests, or that the model could not
  // be loaded, RESOURCE_EXHAUSTED that too many orders wait.
  void Load(const std::string& name, std::optional<std::string> config_json, Done done);

  // From here on no request finds the model. OK once those that had found it are answered and its memory is
  // free; DEADLINE_EXCEEDED if they take longer than unload_timeout: then it is freed later.
  // `with_dependents`: also an ensemble's models, unless another loaded ensemble needs them.
  void Unload(const std::string& name, bool with_dependents, Done done);

  // ModelTable says what these do.
  absl::StatusOr<std::shared_ptr<ServedModel>> FindReady(absl::string_view name, int64_t version) const {
    return table_.FindReady(name, version);
  }
  absl::StatusOr<ModelSnapshot> Describe(absl::string_view name, int64_t version) const {
    return table_.Describe(name, version);
  }
  absl::StatusOr<int64_t> VersionOf(absl::string_view name, absl::string_view version) const {
    return table_.VersionOf(name, version);
  }
  std::vector<ModelSnapshot> List() const { return table_.List(); }
  std::vector<IndexEntry> Index() const { return table_.Index(); }

  // The first model that was to be there at start and is not served, or OK. A model that was unloaded since
  // is not missed. An empty repository is ready: it serves all that it has.
  absl::Status CheckAllReady() const { return table_.CheckRequired(); }

  // How long the longest forward pass has been running.
  absl::Duration BusyFor() const { return host_.BusyFor(); }
  // The name of a model whose device answers nothing any more; empty if there is none.
  std::string LostModel() const { return host_.LostModel(); }

  // Device::Sweep of all of them.
  void Sweep() { host_.Sweep(); }

  // Takes no more orders, computes what is queued and ends every instance; blocks until what is being loaded
  // is. Idempotent.
  void Close();

 private:
  // Why a model that nobody has asked for is not served.
  static constexpr char kNotLoaded[] = "not loaded";

  // What the thread does when it can; `cancelled` is what keeps it from it, or OK.
  using Job = absl::AnyInvocable<void(absl::Status cancelled) &&>;

  // What wakes the thread. Models' handles, which tell when the last is gone, may outlive the catalog.
  struct Orders {
    absl::Mutex mutex;
    std::deque<Job> jobs ABSL_GUARDED_BY(mutex);
    bool closed ABSL_GUARDED_BY(mutex) = false;
    // Whether a model that was dismissed has lost its last user.
    bool released ABSL_GUARDED_BY(mutex) = false;
  };

  ModelHost::Options HostOptions() const;
  bool closed() const;
  void Order(Job job);
  bool IsWanted(const std::string& name) const;

  // The rest is the thread's.
  void Run();
  void LoadAtStart();
  absl::StatusOr<std::string> RepositoryOf(const std::string& name) const;
  // `depth`: of how many ensembles it is a part.
  absl::Status Apply(const std::string& repository, const std::string& name,
                     const std::optional<std::string>& config_json, ModelHost::Progress progress, int depth);
  absl::Status LoadByName(const std::string& name, const std::optional<std::string>& config_json, int depth);
  absl::Status LoadParts(const ModelSettings& settings, int depth);
  void DoUnload(const std::string& name, bool with_dependents, Done done);
  std::vector<std::string> WithDependents(const std::string& name) const;
  void Look();
  void LookAt(const std::string& repository);
  void Remove(const std::string& name);
  void TellChanges();

  const CatalogOptions options_;
  Clock* const clock_;
  const std::shared_ptr<Orders> orders_ = std::make_shared<Orders>();
  ModelTable table_;
  ModelHost host_;
  Events events_;
  std::thread thread_;

  // Names in each repository, as they were listed last.
  std::map<std::string, std::set<std::string>> names_;
  // What was applied of each repository.
  std::map<std::string, Settling> settling_;
  // Where what was applied last came from, by model.
  std::map<std::string, std::string> applied_from_;
  // Loaded by a request's configuration: the file does not say what they are.
  std::set<std::string> overridden_;
  // Repositories that cannot be read any more.
  std::set<std::string> vanished_;
  // By model, what model_changed was told last.
  std::map<std::string, bool> told_;
};

}  // namespace saccade::server
