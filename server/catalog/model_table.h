// Which models and versions there are, and the ServedModel behind each that serves: every request looks its
// model up here. The ModelHost, which owns the models, writes the table as the Catalog has it load them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/catalog/served_model.h"

namespace saccade::server {

// An entry of the repository index.
struct IndexEntry {
  std::string name;
  // 0 if no version is known, because the folder is broken or was never read.
  int64_t version = 0;
  ModelSnapshot::State state = ModelSnapshot::State::kUnavailable;
  // Why the version is not served; for one that is served, why a newer load of it failed.
  std::string reason;
};

// Thread-safe; calls do not block for long. Requests read the table; only the catalog's thread writes it,
// except for SetLoadStep(), which the threads that load call.
class ModelTable {
 public:
  using Handle = std::shared_ptr<ServedModel>;

  // Finds the requested version, or for 0 the highest that is ready. NOT_FOUND lists what exists; UNAVAILABLE
  // gives the reason why it is not ready.
  absl::StatusOr<Handle> FindReady(absl::string_view name, int64_t version) const;

  // Describes a version in any state, with its timing. A model without versions is described as version 0.
  // NOT_FOUND as above.
  absl::StatusOr<ModelSnapshot> Describe(absl::string_view name, int64_t version) const;

  // Ascending; empty for an unknown model.
  std::vector<int64_t> ServedVersions(absl::string_view name) const;

  // All served versions, ordered by name and version.
  std::vector<Handle> Served() const;

  // Ordered by name and version.
  std::vector<ModelSnapshot> List() const;
  // Grows whenever the table changes, except for the steps of loads. What served models report themselves,
  // such as their queues, changes without it.
  uint64_t generation() const;
  std::vector<IndexEntry> Index() const;

  // Parses a request's version: empty (0), decimal digits, or a label of the model. INVALID_ARGUMENT lists
  // the labels. NOT_FOUND as above, unless the version is numeric. UNAVAILABLE if the model is cold and was
  // never loaded with such a label.
  absl::StatusOr<int64_t> VersionOf(absl::string_view name, absl::string_view version) const;

  bool IsKnown(absl::string_view name) const;

  // Whether a request for the model loads it: SetOnDemand() was called, and no version is served.
  bool IsCold(absl::string_view name) const;

  struct Counts {
    int64_t served = 0;
    int64_t not_served = 0;
  };
  // Counts the known models by whether a version of them is served.
  Counts CountModels() const;

  // UNAVAILABLE for the first required model without a served version, or OK.
  absl::Status CheckRequired() const;
  // The names of all such models.
  std::vector<std::string> Missing() const;

  // Marks a model that must be served before the daemon is ready.
  void Require(const std::string& name);
  // Sets the state that the model reports while it has no version.
  void SetModel(const std::string& name, ModelSnapshot::State state, std::string reason);
  // Whether requests load the model while no version of it is served.
  void SetOnDemand(const std::string& name, bool on_demand);
  // Appended to the reason of what failed to load, e.g. "; retried in 4 s".
  void SetRetry(const std::string& name, std::string retry);
  void SetLabels(const std::string& name, std::map<std::string, int64_t> labels);
  std::map<std::string, int64_t> Labels(const std::string& name) const;
  // Which version answers requests that name none: `promoted` if it is served, or else the highest that is,
  // but never `shadow`. 0 for none.
  struct Answering {
    int64_t promoted = 0;
    int64_t shadow = 0;
  };
  void SetAnswering(const std::string& name, const Answering& answering);
  // Adds or replaces the description of a version. If the version is served, it continues to be, and only
  // `snapshot.reason` takes effect.
  void SetVersion(const ModelSnapshot& snapshot);
  // Changes nothing unless the version is listed as loading.
  void SetLoadStep(const std::string& name, int64_t version, const LoadStep& step);
  // From now on `model` serves the version.
  void Serve(const std::string& name, int64_t version, Handle model);
  // Stops serving the version, which stays listed with this state and reason.
  void Withdraw(const std::string& name, int64_t version, ModelSnapshot::State state, std::string reason);
  // The same for a model without versions.
  void WithdrawModel(const std::string& name, std::string reason);
  void EraseVersion(const std::string& name, int64_t version);
  void EraseModel(const std::string& name);

 private:
  struct Version {
    // Null if the version is not served; `snapshot` then describes it.
    Handle serving;
    ModelSnapshot snapshot;
  };
  struct Model {
    std::map<int64_t, Version> versions;
    std::map<std::string, int64_t> labels;
    Answering answering;
    // Used while there is no version.
    ModelSnapshot::State state = ModelSnapshot::State::kLoading;
    std::string reason;
    bool required = false;
    bool on_demand = false;
    std::string retry;
  };
  using Models = std::map<std::string, Model, std::less<>>;

  absl::StatusOr<Models::const_iterator> Find(absl::string_view name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Chooses the requested version, or for 0 the promoted or the highest that is served, or else the highest,
  // without the shadow version. Null if the model has no such version.
  static absl::StatusOr<const Version*> Choose(const std::string& name, const Model& model, int64_t version);
  static bool Serves(const Model& model);
  static bool IsCold(const Model& model);
  // "it serves version 1, 3", or "no version of it serves".
  static std::string ServingText(const Model& model);
  // The reason with the model's `retry`.
  static std::string ReasonOf(const Model& model, const std::string& reason);
  static ModelSnapshot SnapshotOf(const std::string& name, const Model& model, const Version* version);

  mutable absl::Mutex mutex_;
  Models models_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
