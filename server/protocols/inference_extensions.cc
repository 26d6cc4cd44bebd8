// Triton's extensions of GRPCInferenceService beside inference itself.
#include <algorithm>
#include <string>

#include "server/inference/model_statistics.h"
#include "server/logging/log.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_service.h"
#include "server/protocols/log_settings.h"
#include "server/protocols/model_config.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

void ToMessage(const Spent& spent, inference::StatisticDuration* message) {
  message->set_count(spent.count);
  message->set_ns(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(spent.time))));
}

void ToMessage(const ModelUsage& usage, inference::InferStatistics* message) {
  ToMessage(usage.success, message->mutable_success());
  ToMessage(usage.fail, message->mutable_fail());
  ToMessage(usage.queue, message->mutable_queue());
  ToMessage(usage.input, message->mutable_compute_input());
  ToMessage(usage.infer, message->mutable_compute_infer());
  ToMessage(usage.output, message->mutable_compute_output());
  // Every request is computed.
  message->mutable_cache_hit();
  message->mutable_cache_miss();
}

void ToMessage(const ModelStatistics& statistics, inference::ModelStatistics* message) {
  const ModelUsage& usage = statistics.usage;
  message->set_name(statistics.model);
  message->set_version(absl::StrCat(statistics.version));
  message->set_inference_count(usage.pictures);
  message->set_execution_count(usage.passes);
  if (usage.last != absl::InfinitePast()) {
    message->set_last_inference(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMillis(usage.last))));
  }
  ToMessage(usage, message->mutable_inference_stats());
  for (const auto& [size, spent] : usage.by_batch_size) {
    inference::InferBatchStatistics& batch = *message->add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(size));
    ToMessage(spent, batch.mutable_compute_infer());
    // Pictures are prepared before they are put together, and answers made after they were taken apart: that
    // time is the requests' own.
    batch.mutable_compute_input()->set_count(spent.count);
    batch.mutable_compute_output()->set_count(spent.count);
  }
}

absl::StatusOr<inference::ModelConfig> ConfigOf(const Catalog& catalog, const Inference& inference,
                                                const inference::ModelConfigRequest& request) {
  const auto version = ParseVersion(request.version());
  if (!version.ok()) return version.status();
  const auto model = catalog.FindReady(request.name(), *version);
  if (!model.ok()) return model.status();
  const auto described = inference.Describe((*model)->name(), (*model)->version());
  if (!described.ok()) return described.status();
  return ConfigOf((*model)->settings(), *described);
}

void ToMessage(const SharedRegion& region, inference::SystemSharedMemoryStatusResponse* message) {
  auto& status = (*message->mutable_regions())[region.name];
  status.set_name(region.name);
  status.set_key(region.key);
  status.set_offset(region.offset);
  status.set_byte_size(region.size);
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ModelConfig(grpc::CallbackServerContext* context,
                                                        const inference::ModelConfigRequest* request,
                                                        inference::ModelConfigResponse* response) {
  const auto config = ConfigOf(*rooms_.catalog, *rooms_.inference, *request);
  if (config.ok()) *response->mutable_config() = *config;
  return FinishNow(context, ToGrpcStatus(config.status()));
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(grpc::CallbackServerContext* context,
                                                            const inference::ModelStatisticsRequest* request,
                                                            inference::ModelStatisticsResponse* response) {
  const auto version = ParseVersion(request->version());
  if (!version.ok()) return FinishNow(context, ToGrpcStatus(version.status()));
  const auto statistics = StatisticsOf(*rooms_.catalog, request->name(), *version);
  if (!statistics.ok()) return FinishNow(context, ToGrpcStatus(statistics.status()));
  for (const auto& model : *statistics) ToMessage(model, response->add_model_stats());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest* request,
    inference::SystemSharedMemoryStatusResponse* response) {
  if (request->name().empty()) {
    for (const SharedRegion& region : rooms_.shared_memory->List()) ToMessage(region, response);
    return FinishNow(context, grpc::Status::OK);
  }
  const auto region = rooms_.shared_memory->Find(request->name());
  if (region.ok()) ToMessage(*region, response);
  return FinishNow(context, ToGrpcStatus(region.status()));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryRegister(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryRegisterRequest* request,
    inference::SystemSharedMemoryRegisterResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(rooms_.shared_memory->Register({.name = request->name(),
                                                                         .key = request->key(),
                                                                         .offset = request->offset(),
                                                                         .size = request->byte_size()})));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryUnregisterRequest* request,
    inference::SystemSharedMemoryUnregisterResponse* /*response*/) {
  if (request->name().empty()) {
    rooms_.shared_memory->UnregisterAll();
  } else {
    rooms_.shared_memory->Unregister(request->name());
  }
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryStatusRequest* request,
    inference::CudaSharedMemoryStatusResponse* /*response*/) {
  if (request->name().empty()) return FinishNow(context, grpc::Status::OK);
  return FinishNow(context, ToGrpcStatus(absl::NotFoundError("no CUDA shared memory region is registered")));
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryRegister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest* /*request*/,
    inference::CudaSharedMemoryRegisterResponse* /*response*/) {
  return FinishNow(context,
                   ToGrpcStatus(absl::UnimplementedError(
                       "CUDA shared memory is not served; send the bytes, or use system shared memory")));
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest* /*request*/,
    inference::CudaSharedMemoryUnregisterResponse* /*response*/) {
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::TraceSetting(grpc::CallbackServerContext* context,
                                                         const inference::TraceSettingRequest* /*request*/,
                                                         inference::TraceSettingResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(absl::UnavailableError("this server does not trace requests")));
}

grpc::ServerUnaryReactor* InferenceService::LogSettings(grpc::CallbackServerContext* context,
                                                        const inference::LogSettingsRequest* request,
                                                        inference::LogSettingsResponse* response) {
  const auto settings = Changed(CurrentLogSettings(), CurrentLogFormat(), *request);
  if (!settings.ok()) return FinishNow(context, ToGrpcStatus(settings.status()));
  if (!request->settings().empty()) {
    ChangeLogSettings(*settings);
    Log(LogLevel::kInfo, "log settings changed",
        {{"info", settings->info},
         {"warning", settings->warning},
         {"error", settings->error},
         {"verbose", settings->verbose}});
  }
  ToMessage(*settings, CurrentLogFormat(), response);
  return FinishNow(context, grpc::Status::OK);
}

}  // namespace saccade::server
