// Triton's extensions of GRPCInferenceService beside inference itself.
#include <cstdint>
#include <string>

#include "server/inference/absent_extensions.h"
#include "server/inference/log_settings.h"
#include "server/inference/model_statistics.h"
#include "server/protocols/inference/model_config.h"
#include "server/protocols/inference/service.h"
#include "server/protocols/inference/statistics.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/message_methods.h"

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

// REQUIRES: the region is on a GPU.
void ToMessage(const SharedRegion& region, inference::CudaSharedMemoryStatusResponse* message) {
  auto& status = (*message->mutable_regions())[region.name];
  status.set_name(region.name);
  status.set_device_id(static_cast<uint64_t>(*region.gpu));
  status.set_byte_size(region.size);
}

}  // namespace

void InferenceService::AddModelFacts(CallMethods& methods) {
  using inference::ModelConfigRequest, inference::ModelConfigResponse;
  using inference::ModelStatisticsRequest, inference::ModelStatisticsResponse;
  methods.push_back(AnsweredMethod<ModelConfigRequest, ModelConfigResponse>(
      InferencePath("ModelConfig"),
      [this](const CallStart&, const ModelConfigRequest& request, ModelConfigResponse* response) {
        const auto config = ConfigOf(*deps_.catalog, *deps_.inference, request.name(), request.version());
        if (config.ok()) *response->mutable_config() = *config;
        return config.status();
      }));
  methods.push_back(AnsweredMethod<ModelStatisticsRequest, ModelStatisticsResponse>(
      InferencePath("ModelStatistics"),
      [this](const CallStart&, const ModelStatisticsRequest& request, ModelStatisticsResponse* response) {
        const auto statistics = StatisticsOf(*deps_.catalog, request.name(), request.version());
        if (statistics.ok()) ToMessage(*statistics, response);
        return deps_.inference->codes().OfStatistics(statistics.status());
      },
      options_.pool));
}

void InferenceService::AddSystemSharedMemory(CallMethods& methods) {
  using RegisterRequest = inference::SystemSharedMemoryRegisterRequest;
  using RegisterResponse = inference::SystemSharedMemoryRegisterResponse;
  using StatusRequest = inference::SystemSharedMemoryStatusRequest;
  using StatusResponse = inference::SystemSharedMemoryStatusResponse;
  using UnregisterRequest = inference::SystemSharedMemoryUnregisterRequest;
  using UnregisterResponse = inference::SystemSharedMemoryUnregisterResponse;
  methods.push_back(AnsweredMethod<StatusRequest, StatusResponse>(
      InferencePath("SystemSharedMemoryStatus"),
      [this](const CallStart& start, const StatusRequest& request, StatusResponse* response) {
        const auto regions = deps_.shared_memory->Status(request.name(), start.client);
        if (!regions.ok()) return regions.status();
        for (const SharedRegion& region : *regions) ToMessage(region, response);
        return absl::OkStatus();
      }));
  methods.push_back(AnsweredMethod<RegisterRequest, RegisterResponse>(
      InferencePath("SystemSharedMemoryRegister"),
      [this](const CallStart& start, const RegisterRequest& request, RegisterResponse*) {
        return deps_.shared_memory->Register({.name = request.name(),
                                              .key = request.key(),
                                              .offset = request.offset(),
                                              .size = request.byte_size()},
                                             start.client);
      }));
  methods.push_back(AnsweredMethod<UnregisterRequest, UnregisterResponse>(
      InferencePath("SystemSharedMemoryUnregister"),
      [this](const CallStart& start, const UnregisterRequest& request, UnregisterResponse*) {
        deps_.shared_memory->Unregister(request.name(), start.client);
        return absl::OkStatus();
      }));
}

// On the pool where the driver opens or closes memory, which takes long.
void InferenceService::AddCudaSharedMemory(CallMethods& methods) {
  using RegisterRequest = inference::CudaSharedMemoryRegisterRequest;
  using RegisterResponse = inference::CudaSharedMemoryRegisterResponse;
  using StatusRequest = inference::CudaSharedMemoryStatusRequest;
  using StatusResponse = inference::CudaSharedMemoryStatusResponse;
  using UnregisterRequest = inference::CudaSharedMemoryUnregisterRequest;
  using UnregisterResponse = inference::CudaSharedMemoryUnregisterResponse;
  methods.push_back(AnsweredMethod<StatusRequest, StatusResponse>(
      InferencePath("CudaSharedMemoryStatus"),
      [this](const CallStart& start, const StatusRequest& request, StatusResponse* response) {
        const auto regions = deps_.shared_memory->Status(request.name(), start.client, RegionKind::kCuda);
        if (!regions.ok()) return regions.status();
        for (const SharedRegion& region : *regions) ToMessage(region, response);
        return absl::OkStatus();
      }));
  methods.push_back(AnsweredMethod<RegisterRequest, RegisterResponse>(
      InferencePath("CudaSharedMemoryRegister"),
      [this](const CallStart& start, const RegisterRequest& request, RegisterResponse*) {
        return deps_.shared_memory->Register({.name = request.name(),
                                              .key = request.raw_handle(),
                                              .size = request.byte_size(),
                                              .gpu = request.device_id()},
                                             start.client);
      },
      options_.pool));
  methods.push_back(AnsweredMethod<UnregisterRequest, UnregisterResponse>(
      InferencePath("CudaSharedMemoryUnregister"),
      [this](const CallStart& start, const UnregisterRequest& request, UnregisterResponse*) {
        deps_.shared_memory->Unregister(request.name(), start.client, RegionKind::kCuda);
        return absl::OkStatus();
      },
      options_.pool));
}

void InferenceService::AddSettings(CallMethods& methods) {
  using inference::LogSettingsRequest, inference::LogSettingsResponse;
  using inference::TraceSettingRequest, inference::TraceSettingResponse;
  // UNAVAILABLE, as in a Triton that was built without tracing.
  methods.push_back(AnsweredMethod<TraceSettingRequest, TraceSettingResponse>(
      InferencePath("TraceSetting"), [](const CallStart&, const TraceSettingRequest&, TraceSettingResponse*) {
        return TraceExtensionUnsupported();
      }));
  methods.push_back(AnsweredMethod<LogSettingsRequest, LogSettingsResponse>(
      InferencePath("LogSettings"),
      [](const CallStart& start, const LogSettingsRequest& request, LogSettingsResponse* response) {
        const LogCallScope scope(LogCallOf(start.metadata));
        const absl::Status changed = ChangeLog(ChangesOf(request));
        if (changed.ok()) ToMessage(DescribeLog(), response);
        return changed;
      }));
}

}  // namespace saccade::server
