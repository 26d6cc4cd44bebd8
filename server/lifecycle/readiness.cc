#include "server/lifecycle/readiness.h"

#include "server/logging/log.h"

namespace saccade::server {
namespace {

constexpr char kLiveness[] = "liveness";

}  // namespace

void Readiness::Attach(grpc::HealthCheckServiceInterface* health) {
  health_ = health;
  health_->SetServingStatus(kLiveness, true);
  Publish();
}

void Readiness::Publish() {
  for (const char* service : {"", "saccade.v1.Vision", "inference.GRPCInferenceService"}) {
    health_->SetServingStatus(service, ready());
  }
}

void Readiness::ModelChanged(const std::string& model, bool model_ready) {
  // A model may have the name of a service; the service's status then takes precedence.
  if (model == kLiveness || model == "saccade.v1.Vision" || model == "inference.GRPCInferenceService") return;
  health_->SetServingStatus(model, model_ready && !draining_);
}

void Readiness::ModelsReady(bool models_ready) {
  if (models_ready_.exchange(models_ready) == models_ready) return;
  if (models_ready) {
    Log(LogLevel::kInfo, "ready");
  } else {
    Log(LogLevel::kWarning, "no longer ready");
  }
  Publish();
}

void Readiness::StartDraining() {
  draining_ = true;
  health_->SetServingStatus(false);
  health_->SetServingStatus(kLiveness, live_);
}

void Readiness::SetLive(bool live) {
  if (live_.exchange(live) == live) return;
  if (live) {
    Log(LogLevel::kWarning, "the long forward pass has ended; liveness is SERVING");
  } else {
    Log(LogLevel::kError, "a forward pass exceeds --stall-seconds; liveness is NOT_SERVING");
  }
  health_->SetServingStatus(kLiveness, live);
}

}  // namespace saccade::server
