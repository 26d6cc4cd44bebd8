// The daemon's readiness and liveness, shared by gRPC's health service, HTTP and the other protocols.
#pragma once

#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <string>

namespace saccade::server {

// The daemon is ready while the required models are, until draining begins. Health is reported for "" (the
// whole daemon), for the names of the gRPC services and of each model, and for "liveness", which alone stays
// SERVING while the daemon drains. Thread-safe.
class Readiness {
 public:
  // Publishes the state to the running server's health service from now on. Call once, before any function
  // below.
  void Attach(grpc::HealthCheckServiceInterface* health);

  bool ready() const { return models_ready_ && !draining_; }
  bool live() const { return live_; }

  void ModelChanged(const std::string& model, bool ready);
  // Whether all required models are served.
  void ModelsReady(bool ready);
  // Cannot be undone.
  void StartDraining();
  // False while a forward pass is assumed to hang.
  void SetLive(bool live);

 private:
  void Publish();

  grpc::HealthCheckServiceInterface* health_ = nullptr;
  std::atomic<bool> models_ready_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> live_{true};
};

}  // namespace saccade::server
