#include "server/lifecycle/readiness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/logging/log.h"

namespace saccade::server {
namespace {

constexpr char kLiveness[] = "liveness";
constexpr char kWholeDaemon[] = "";
constexpr const char* kServices[] = {"saccade.v1.Vision", "inference.GRPCInferenceService"};

// A model may have the name of a service; the service's status then takes precedence.
bool IsServiceName(const std::string& model) {
  return model == kLiveness || model == kWholeDaemon ||
         std::find(std::begin(kServices), std::end(kServices), model) != std::end(kServices);
}

}  // namespace

void Readiness::Attach(Publish publish) {
  absl::MutexLock lock(&mutex_);
  publish_ = std::move(publish);
  publish_(kLiveness, live_);
  PublishServices();
}

bool Readiness::ready() const {
  absl::MutexLock lock(&mutex_);
  return serving_;
}

bool Readiness::live() const {
  absl::MutexLock lock(&mutex_);
  return live_;
}

void Readiness::Refresh() {
  const auto is_ready = [](const auto& model) { return model.second; };
  const bool any = any_suffices_ && std::any_of(models_.begin(), models_.end(), is_ready);
  const bool serving = models_ready_.value_or(any) && !draining_;
  if (serving_ == serving) return;
  serving_ = serving;
  PublishServices();
  if (draining_) return;
  if (serving) {
    Log(LogLevel::kInfo, "ready");
  } else {
    Log(LogLevel::kWarning, "no longer ready");
  }
}

// The whole daemon is SERVING only while each service is.
void Readiness::PublishServices() {
  if (!serving_) publish_(kWholeDaemon, false);
  for (const char* service : kServices) publish_(service, serving_);
  if (serving_) publish_(kWholeDaemon, true);
}

void Readiness::PublishModel(const std::string& model, bool ready) { publish_(model, ready && !draining_); }

void Readiness::ModelChanged(const std::string& model, bool ready) {
  if (IsServiceName(model)) return;
  absl::MutexLock lock(&mutex_);
  models_[model] = ready;
  PublishModel(model, ready);
  Refresh();
}

void Readiness::ModelsReady(bool ready) {
  absl::MutexLock lock(&mutex_);
  // A daemon that is ready without all models stays so: load balancers may have removed the others.
  if (!ready && any_suffices_ && !models_ready_.has_value()) return;
  models_ready_ = ready;
  Refresh();
}

bool Readiness::StopWaiting() {
  absl::MutexLock lock(&mutex_);
  if (models_ready_.has_value()) return false;
  any_suffices_ = true;
  Refresh();
  return true;
}

void Readiness::StartDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  Refresh();
  for (const auto& [model, ready] : models_) PublishModel(model, ready);
}

bool Readiness::SetLive(bool live) {
  absl::MutexLock lock(&mutex_);
  if (live_ == live) return false;
  live_ = live;
  publish_(kLiveness, live);
  return true;
}

}  // namespace saccade::server
