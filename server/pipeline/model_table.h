// Which versions of which models there are, and what serves them: what every request looks up.
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
#include "server/pipeline/served_model.h"

namespace saccade::server {

// A line of the repository's index.
struct IndexEntry {
  std::string name;
  // 0: none is known, because the folder is broken or was never read.
  int64_t version = 0;
  ModelSnapshot::State state = ModelSnapshot::State::kUnavailable;
  // Why it is not served; of one that is, why what lies in the repository could not take its place.
  std::string reason;
};

// Thread-safe, and never blocks for long. Requests read it; the catalog's thread alone writes it.
class ModelTable {
 public:
  using Handle = std::shared_ptr<ServedModel>;

  // The version asked for, or for 0 the highest that is ready. NOT_FOUND names what there is; UNAVAILABLE
  // says why it is not ready.
  absl::StatusOr<Handle> FindReady(absl::string_view name, int64_t version) const;

  // Whatever its state; of a broken model's version 0. NOT_FOUND as above.
  absl::StatusOr<ModelSnapshot> Describe(absl::string_view name, int64_t version) const;

  // By name and version.
  std::vector<ModelSnapshot> List() const;
  std::vector<IndexEntry> Index() const;

  // A version as a request writes it: nothing (0), a number's digits, or a label of the model's.
  // INVALID_ARGUMENT names the labels that there are; NOT_FOUND, of what is no number, as above.
  absl::StatusOr<int64_t> VersionOf(absl::string_view name, absl::string_view version) const;

  bool IsKnown(absl::string_view name) const;

  // The first required model that no version of serves, or OK.
  absl::Status CheckRequired() const;

  // A model that is to be there when the daemon is ready.
  void Require(const std::string& name);
  // What the model as a whole says while no version of it is known.
  void SetModel(const std::string& name, ModelSnapshot::State state, std::string reason);
  void SetLabels(const std::string& name, std::map<std::string, int64_t> labels);
  // A version that nothing serves yet; if something does, it goes on, and `snapshot.reason` is kept.
  void SetVersion(const ModelSnapshot& snapshot);
  // From here on this one serves.
  void Serve(const std::string& name, int64_t version, Handle model);
  // Nothing serves the version any more; it stays, in this state, with this reason.
  void Withdraw(const std::string& name, int64_t version, ModelSnapshot::State state, std::string reason);
  void EraseVersion(const std::string& name, int64_t version);
  void EraseModel(const std::string& name);

 private:
  struct Version {
    // Null: `snapshot` says why.
    Handle serving;
    ModelSnapshot snapshot;
  };
  struct Model {
    std::map<int64_t, Version> versions;
    std::map<std::string, int64_t> labels;
    // While there is no version.
    ModelSnapshot::State state = ModelSnapshot::State::kLoading;
    std::string reason;
    bool required = false;
  };
  using Models = std::map<std::string, Model, std::less<>>;

  absl::StatusOr<Models::const_iterator> Find(absl::string_view name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The version asked for, or for 0 the highest that serves, or the highest; null of a model without any.
  static absl::StatusOr<const Version*> Choose(const std::string& name, const Model& model, int64_t version);
  static ModelSnapshot SnapshotOf(const std::string& name, const Model& model, const Version* version);

  mutable absl::Mutex mutex_;
  Models models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
