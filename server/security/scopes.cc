#include "server/security/scopes.h"

namespace saccade::server {
namespace {

struct Call {
  absl::string_view service;
  absl::string_view method;
  Scope scope;
};

constexpr absl::string_view kInference = "inference.GRPCInferenceService";

constexpr Call kCalls[] = {
    // Health probes send no token, and the schemas are public.
    {"grpc.health.v1.Health", "Check", Scope::kOpen},
    {"grpc.health.v1.Health", "Watch", Scope::kOpen},
    // Lists the models' names.
    {"grpc.health.v1.Health", "List", Scope::kPredict},
    {"grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", Scope::kOpen},
    {"grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo", Scope::kOpen},
    {"saccade.v1.Vision", "Predict", Scope::kPredict},
    {"saccade.v1.Vision", "PredictStream", Scope::kPredict},
    {"saccade.v1.Vision", "Restore", Scope::kPredict},
    {"saccade.v1.Vision", "ListModels", Scope::kPredict},
    {"saccade.v1.Vision", "GetModel", Scope::kPredict},
    {kInference, "ServerLive", Scope::kOpen},
    {kInference, "ServerReady", Scope::kOpen},
    {kInference, "ModelReady", Scope::kPredict},
    {kInference, "ServerMetadata", Scope::kPredict},
    {kInference, "ModelMetadata", Scope::kPredict},
    {kInference, "ModelInfer", Scope::kPredict},
    {kInference, "ModelStreamInfer", Scope::kPredict},
    {kInference, "ModelConfig", Scope::kPredict},
    {kInference, "ModelStatistics", Scope::kPredict},
    {kInference, "RepositoryIndex", Scope::kPredict},
    {kInference, "RepositoryModelLoad", Scope::kAdmin},
    {kInference, "RepositoryModelUnload", Scope::kAdmin},
    {kInference, "SystemSharedMemoryStatus", Scope::kAdmin},
    {kInference, "SystemSharedMemoryRegister", Scope::kAdmin},
    {kInference, "SystemSharedMemoryUnregister", Scope::kAdmin},
    {kInference, "CudaSharedMemoryStatus", Scope::kAdmin},
    {kInference, "CudaSharedMemoryRegister", Scope::kAdmin},
    {kInference, "CudaSharedMemoryUnregister", Scope::kAdmin},
    {kInference, "TraceSetting", Scope::kAdmin},
    {kInference, "LogSettings", Scope::kAdmin},
};

struct Route {
  absl::string_view method;
  absl::string_view path;
  Scope scope;
};

constexpr Route kRoutes[] = {
    {"GET", "/v2/health/live", Scope::kOpen},
    {"GET", "/v2/health/ready", Scope::kOpen},
    // The page contains no data; its requests for data require a token.
    {"GET", "/", Scope::kOpen},
    {"GET", "/page.css", Scope::kOpen},
    {"GET", "/page.js", Scope::kOpen},
    {"GET", "/attention.js", Scope::kOpen},
    {"GET", "/clip.js", Scope::kOpen},
    {"GET", "/point.js", Scope::kOpen},
    {"GET", "/request.js", Scope::kOpen},
    {"GET", "/strip.js", Scope::kOpen},
    {"GET", "/tiff.js", Scope::kOpen},
    {"GET", "/token.js", Scope::kOpen},
    {"GET", "/volume.js", Scope::kOpen},
    {"GET", "/code.js", Scope::kOpen},
    {"GET", "/findings.js", Scope::kOpen},
    {"GET", "/load.js", Scope::kOpen},
    {"GET", "/loading.js", Scope::kOpen},
    {"GET", "/text.js", Scope::kOpen},
    {"GET", "/models.js", Scope::kOpen},
    {"GET", "/overlay.js", Scope::kOpen},
    {"GET", "/boxes.js", Scope::kOpen},
    {"GET", "/files.js", Scope::kOpen},
    {"GET", "/masks.js", Scope::kOpen},
    {"GET", "/picture.js", Scope::kOpen},
    {"GET", "/shown.js", Scope::kOpen},
    {"GET", "/viewer.js", Scope::kOpen},
    {"GET", "/address.js", Scope::kOpen},
    {"GET", "/camera.js", Scope::kOpen},
    {"GET", "/charts.js", Scope::kOpen},
    {"GET", "/compare.js", Scope::kOpen},
    {"GET", "/matching.js", Scope::kOpen},
    {"GET", "/samples.js", Scope::kOpen},
    {"GET", "/session.js", Scope::kOpen},
    {"GET", "/icon.svg", Scope::kOpen},
    // Like gRPC's reflection, it has no data.
    {"GET", "/openapi.json", Scope::kOpen},
    {"GET", "/v1/capture", Scope::kAdmin},
    {"POST", "/v1/capture", Scope::kAdmin},
    {"GET", "/v1/load", Scope::kPredict},
    {"GET", "/v1/models", Scope::kPredict},
    {"GET", "/v1/models/{model}/drift", Scope::kPredict},
    {"GET", "/v1/models/{model}/samples", Scope::kPredict},
    {"GET", "/v1/models/{model}/samples/{sample}", Scope::kPredict},
    {"GET", "/v1/models/{model}/shadow", Scope::kPredict},
    // What other clients have sent.
    {"GET", "/v1/models/{model}/shadow/pictures/{number}", Scope::kAdmin},
    {"POST", "/v1/predict", Scope::kPredict},
    {"POST", "/v1/predict/{model}", Scope::kPredict},
    {"GET", "/v2", Scope::kPredict},
    {"GET", "/v2/models/{model}", Scope::kPredict},
    {"GET", "/v2/models/{model}/versions/{version}", Scope::kPredict},
    {"GET", "/v2/models/{model}/ready", Scope::kPredict},
    {"GET", "/v2/models/{model}/versions/{version}/ready", Scope::kPredict},
    {"POST", "/v2/models/{model}/infer", Scope::kPredict},
    {"POST", "/v2/models/{model}/versions/{version}/infer", Scope::kPredict},
    {"GET", "/v2/models/{model}/config", Scope::kPredict},
    {"GET", "/v2/models/{model}/versions/{version}/config", Scope::kPredict},
    {"GET", "/v2/models/{model}/stats", Scope::kPredict},
    {"GET", "/v2/models/{model}/versions/{version}/stats", Scope::kPredict},
    {"GET", "/v2/models/stats", Scope::kPredict},
    {"POST", "/v2/repository/index", Scope::kPredict},
    {"POST", "/v2/repository/models/{model}/load", Scope::kAdmin},
    {"POST", "/v2/repository/models/{model}/unload", Scope::kAdmin},
    {"GET", "/v2/logging", Scope::kAdmin},
    {"POST", "/v2/logging", Scope::kAdmin},
    {"GET", "/v2/trace/setting", Scope::kAdmin},
    {"POST", "/v2/trace/setting", Scope::kAdmin},
    {"GET", "/v2/models/{model}/trace/setting", Scope::kAdmin},
    {"POST", "/v2/models/{model}/trace/setting", Scope::kAdmin},
    {"GET", "/v2/systemsharedmemory/status", Scope::kAdmin},
    {"GET", "/v2/systemsharedmemory/region/{region}/status", Scope::kAdmin},
    {"POST", "/v2/systemsharedmemory/region/{region}/register", Scope::kAdmin},
    {"POST", "/v2/systemsharedmemory/unregister", Scope::kAdmin},
    {"POST", "/v2/systemsharedmemory/region/{region}/unregister", Scope::kAdmin},
    {"GET", "/v2/cudasharedmemory/status", Scope::kAdmin},
    {"GET", "/v2/cudasharedmemory/region/{region}/status", Scope::kAdmin},
    {"POST", "/v2/cudasharedmemory/region/{region}/register", Scope::kAdmin},
    {"POST", "/v2/cudasharedmemory/unregister", Scope::kAdmin},
    {"POST", "/v2/cudasharedmemory/region/{region}/unregister", Scope::kAdmin},
    {"GET", "/metrics", Scope::kMetrics},
};

}  // namespace

absl::string_view NameOf(Scope scope) {
  switch (scope) {
    case Scope::kOpen:
      return "open";
    case Scope::kPredict:
      return "predict";
    case Scope::kAdmin:
      return "admin";
    case Scope::kMetrics:
      return "metrics";
  }
  return "";
}

std::optional<Scope> ScopeNamed(absl::string_view name) {
  for (const Scope scope : {Scope::kPredict, Scope::kAdmin, Scope::kMetrics}) {
    if (NameOf(scope) == name) return scope;
  }
  return std::nullopt;
}

std::optional<Scope> ScopeOfCall(absl::string_view path) {
  for (const Call& call : kCalls) {
    if (path.size() == call.service.size() + call.method.size() + 2 && path[0] == '/' &&
        path.substr(1, call.service.size()) == call.service && path[call.service.size() + 1] == '/' &&
        path.substr(call.service.size() + 2) == call.method) {
      return call.scope;
    }
  }
  return std::nullopt;
}

std::optional<Scope> ScopeOfRoute(absl::string_view method, absl::string_view route) {
  for (const Route& known : kRoutes) {
    if (known.method == method && known.path == route) return known.scope;
  }
  return std::nullopt;
}

}  // namespace saccade::server
