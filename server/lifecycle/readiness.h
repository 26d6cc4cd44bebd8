// The daemon's readiness and liveness, shared by gRPC's health service, HTTP and the other protocols.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// The daemon is ready while the required models are, until draining begins. A daemon that has stopped waiting
// for its first loads is ready while any model is. Health is reported for "" (the
// whole daemon), for the names of the gRPC services and of each model, and for "liveness", which alone stays
// SERVING while the daemon drains. Thread-safe. No function blocks, except for the lock that orders the
// reports: once StartDraining() has returned, nothing but "liveness" is SERVING any more.
class Readiness {
 public:
  // Publishes the state of a service to gRPC's health service; must not block.
  using Publish = std::function<void(const std::string& service, bool serving)>;

  // Publishes the state from now on. Call once, before any function below. `publish` must be callable as long
  // as this object is used.
  void Attach(Publish publish);

  bool ready() const;
  bool live() const;

  // Whether a version of the model is served.
  void ModelChanged(const std::string& model, bool ready);
  // Whether all required models are served. Called once the loads at start have ended, and at each change
  // from then on.
  void ModelsReady(bool ready);
  // Until ModelsReady(true) is called for the first time, the daemon is ready while any model is. Returns
  // false, and changes nothing, if ModelsReady() was called already.
  bool StopWaiting();
  // Cannot be undone.
  void StartDraining();
  // False while a forward pass is assumed to hang. Returns whether that is a change.
  bool SetLive(bool live);

 private:
  // Publishes the services if the daemon has become ready or not ready.
  void Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishServices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishModel(const std::string& model, bool ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Publish publish_ ABSL_GUARDED_BY(mutex_);
  // Whether each known model is ready.
  std::unordered_map<std::string, bool> models_ ABSL_GUARDED_BY(mutex_);
  // The argument of the last ModelsReady() that counted; nullopt until the loads at start have ended.
  std::optional<bool> models_ready_ ABSL_GUARDED_BY(mutex_);
  // Set by StopWaiting().
  bool any_suffices_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether the services were SERVING when they were last published.
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool live_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace saccade::server
