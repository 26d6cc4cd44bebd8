// Every model version that the daemon knows, by name.
#pragma once

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
#include "server/batching/device.h"
#include "server/core/clock.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/served_model.h"

namespace saccade::server {

struct CatalogOptions {
  std::vector<std::string> repositories;
  int64_t default_max_queue_size = 256;
  // Cores that one forward pass may use; 0 divides the machine's cores by the model's instances.
  int threads_per_instance = 0;
};

// Thread-safe.
class Catalog {
 public:
  // Told when a model's state has changed, on the loading thread.
  using Observer = std::function<void(const ModelSnapshot&)>;

  Catalog(CatalogOptions options, Clock* clock, Metrics* metrics);

  // Reads the repositories and lists what is in them; blocks on the file system. An error only if a
  // repository cannot be read, or two of them hold a model of the same name; a broken model is listed as
  // UNAVAILABLE.
  absl::Status Scan();

  // Loads and warms up the latest version of every model, one after the other; blocks for as long as that
  // takes. Returns the first failure, after having tried them all. Stops early when Close was called.
  absl::Status LoadAll(const Observer& observer);

  // The version asked for, or the latest for 0. NOT_FOUND names what there is; UNAVAILABLE says why it is not
  // ready.
  absl::StatusOr<std::shared_ptr<ServedModel>> FindReady(absl::string_view name, int64_t version) const;

  // Whatever its state. NOT_FOUND as above.
  absl::StatusOr<ModelSnapshot> Describe(absl::string_view name, int64_t version) const;

  // By name.
  std::vector<ModelSnapshot> List() const;

  // The first model that is not ready, or OK. An empty repository is ready: it serves all that it has.
  absl::Status CheckAllReady() const;

  // How long the longest forward pass has been running.
  absl::Duration BusyFor() const;

  // Device::Sweep of all of them.
  void Sweep();

  // Computes what is queued and ends every instance. Idempotent.
  void Close();

 private:
  struct Entry {
    // Null if the folder is broken; `snapshot` then says why.
    std::shared_ptr<ServedModel> model;
    ModelSnapshot snapshot;
  };

  absl::Status Add(const std::string& repository);
  Device* DeviceOf(const ModelSettings& settings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<const Entry*> Find(absl::string_view name, int64_t version) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<ServedModel>> Models() const;

  const CatalogOptions options_;
  Clock* const clock_;
  Metrics* const metrics_;
  mutable absl::Mutex mutex_;
  // By GPU; the CPU is -1. They outlive the models.
  std::map<int, std::unique_ptr<Device>> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // The first that no pinned instance has.
  int next_core_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
