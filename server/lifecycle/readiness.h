// The daemon's readiness and liveness, shared by gRPC's health service, HTTP and the other protocols.
#pragma once

#include <grpcpp/health_check_service_interface.h>

#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// The daemon is ready while the required models are, until draining begins. Health is reported for "" (the
// whole daemon), for the names of the gRPC services and of each model, and for "liveness", which alone stays
// SERVING while the daemon drains. Thread-safe. No function blocks, except for the lock that orders the
// reports: once StartDraining() has returned, nothing but "liveness" is SERVING any more.
class Readiness {
 public:
  // Publishes the state to the running server's health service from now on. Call once, before any function
  // below. `health` must outlive this object's use.
  void Attach(grpc::HealthCheckServiceInterface* health);

  bool ready() const;
  bool live() const;

  // Whether a version of the model is served.
  void ModelChanged(const std::string& model, bool ready);
  // Whether all required models are served.
  void ModelsReady(bool ready);
  // Cannot be undone.
  void StartDraining();
  // False while a forward pass is assumed to hang, or once a GPU is lost. Returns whether that is a change.
  bool SetLive(bool live);

 private:
  void PublishServices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishModel(const std::string& model, bool ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Whether each known model is ready.
  std::unordered_map<std::string, bool> models_ ABSL_GUARDED_BY(mutex_);
  bool models_ready_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool live_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace saccade::server
