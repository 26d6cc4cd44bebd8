// Whether the daemon wants traffic, told the same to gRPC's health service, to HTTP and to the protocols.
#pragma once

#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <string>

namespace saccade::server {

// Ready while the models are that have to be, and until draining begins. Health is served for "" (the whole
// daemon), for each gRPC service's and each model's name, and for "liveness", which alone does not fall when
// the daemon drains. Thread-safe.
class Readiness {
 public:
  // Publishes from here on to the running server's health service. Once, before anything below changes a
  // state.
  void Attach(grpc::HealthCheckServiceInterface* health);

  bool ready() const { return models_ready_ && !draining_; }
  bool live() const { return live_; }

  void ModelChanged(const std::string& model, bool ready);
  // Whether the models that have to serve do.
  void ModelsReady(bool ready);
  // For good.
  void StartDraining();
  // Whether forward passes still come to their end.
  void SetLive(bool live);

 private:
  void Publish();

  grpc::HealthCheckServiceInterface* health_ = nullptr;
  std::atomic<bool> models_ready_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> live_{true};
};

}  // namespace saccade::server
