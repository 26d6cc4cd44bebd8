// GRPCInferenceService with every method on gRPC's callback API, the two that carry tensors raw.
#pragma once

#include "inference/grpc_service.grpc.pb.h"

namespace saccade::server {

namespace raw_inference_service {

using Rpcs = inference::GRPCInferenceService;

// One by one, as a stream that is raw cannot override the one of Rpcs::CallbackService.
using Core = Rpcs::WithCallbackMethod_ServerLive<
    Rpcs::WithCallbackMethod_ServerReady<Rpcs::WithCallbackMethod_ModelReady<
        Rpcs::WithCallbackMethod_ServerMetadata<Rpcs::WithCallbackMethod_ModelMetadata<Rpcs::Service>>>>>;
using WithModels = Rpcs::WithCallbackMethod_ModelConfig<
    Rpcs::WithCallbackMethod_ModelStatistics<Rpcs::WithCallbackMethod_RepositoryIndex<
        Rpcs::WithCallbackMethod_RepositoryModelLoad<Rpcs::WithCallbackMethod_RepositoryModelUnload<Core>>>>>;
using WithSharedMemory =
    Rpcs::WithCallbackMethod_SystemSharedMemoryStatus<Rpcs::WithCallbackMethod_SystemSharedMemoryRegister<
        Rpcs::WithCallbackMethod_SystemSharedMemoryUnregister<WithModels>>>;
using WithCudaSharedMemory =
    Rpcs::WithCallbackMethod_CudaSharedMemoryStatus<Rpcs::WithCallbackMethod_CudaSharedMemoryRegister<
        Rpcs::WithCallbackMethod_CudaSharedMemoryUnregister<WithSharedMemory>>>;
using WithSettings =
    Rpcs::WithCallbackMethod_TraceSetting<Rpcs::WithCallbackMethod_LogSettings<WithCudaSharedMemory>>;

}  // namespace raw_inference_service

// ModelInfer and ModelStreamInfer have their messages as gRPC delivers them, so that tensors are not copied
// (docs/decisions/0017).
using RawInferenceService = inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
    inference::GRPCInferenceService::WithRawCallbackMethod_ModelStreamInfer<
        raw_inference_service::WithSettings>>;

}  // namespace saccade::server
