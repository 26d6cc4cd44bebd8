// Triton's extensions of GRPCInferenceService beside inference itself.
#include <string>

#include "server/inference/absent_extensions.h"
#include "server/inference/log_settings.h"
#include "server/inference/model_statistics.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_service.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/model_config.h"
#include "server/protocols/predict_reactor.h"
#include "server/protocols/statistics_messages.h"

namespace saccade::server {
namespace {

NamedParameters ChangesOf(const inference::LogSettingsRequest& request) {
  using Value = inference::LogSettingsRequest::SettingValue;
  NamedParameters changes;
  for (const auto& [name, value] : request.settings()) {
    switch (value.parameter_choice_case()) {
      case Value::kBoolParam:
        changes.emplace_back(name, value.bool_param());
        break;
      case Value::kUint32Param:
        changes.emplace_back(name, uint64_t{value.uint32_param()});
        break;
      default:
        changes.emplace_back(name, std::string_view(value.string_param()));
    }
  }
  return changes;
}

void ToMessage(const NamedParameters& settings, inference::LogSettingsResponse* message) {
  for (const auto& [name, value] : settings) {
    auto& setting = (*message->mutable_settings())[std::string(name)];
    if (const auto* flag = std::get_if<bool>(&value)) setting.set_bool_param(*flag);
    if (const auto* level = std::get_if<uint64_t>(&value))
      setting.set_uint32_param(static_cast<uint32_t>(*level));
    if (const auto* text = std::get_if<std::string_view>(&value))
      setting.set_string_param(std::string(*text));
  }
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
  const auto config = ConfigOf(*deps_.catalog, *deps_.inference, request->name(), request->version());
  if (config.ok()) *response->mutable_config() = *config;
  return FinishNow(context, ToGrpcStatus(config.status()));
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(grpc::CallbackServerContext* context,
                                                            const inference::ModelStatisticsRequest* request,
                                                            inference::ModelStatisticsResponse* response) {
  const auto statistics = StatisticsOf(*deps_.catalog, request->name(), request->version());
  if (statistics.ok()) ToMessage(*statistics, response);
  return FinishNow(context, ToGrpcStatus(statistics.status()));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest* request,
    inference::SystemSharedMemoryStatusResponse* response) {
  const auto regions = deps_.shared_memory->Status(request->name());
  if (regions.ok()) {
    for (const SharedRegion& region : *regions) ToMessage(region, response);
  }
  return FinishNow(context, ToGrpcStatus(regions.status()));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryRegister(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryRegisterRequest* request,
    inference::SystemSharedMemoryRegisterResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(deps_.shared_memory->Register({.name = request->name(),
                                                                        .key = request->key(),
                                                                        .offset = request->offset(),
                                                                        .size = request->byte_size()})));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryUnregisterRequest* request,
    inference::SystemSharedMemoryUnregisterResponse* /*response*/) {
  deps_.shared_memory->Unregister(request->name());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryStatusRequest* request,
    inference::CudaSharedMemoryStatusResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(CudaRegionStatus(request->name())));
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryRegister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest* /*request*/,
    inference::CudaSharedMemoryRegisterResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(NoCudaRegions()));
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest* /*request*/,
    inference::CudaSharedMemoryUnregisterResponse* /*response*/) {
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::TraceSetting(grpc::CallbackServerContext* context,
                                                         const inference::TraceSettingRequest* /*request*/,
                                                         inference::TraceSettingResponse* /*response*/) {
  return FinishNow(context, ToGrpcStatus(TraceExtensionUnsupported()));
}

grpc::ServerUnaryReactor* InferenceService::LogSettings(grpc::CallbackServerContext* context,
                                                        const inference::LogSettingsRequest* request,
                                                        inference::LogSettingsResponse* response) {
  const LogCallScope scope(LogCallOf(*context));
  const absl::Status changed = ChangeLog(ChangesOf(*request));
  if (changed.ok()) ToMessage(DescribeLog(), response);
  return FinishNow(context, ToGrpcStatus(changed));
}

}  // namespace saccade::server
