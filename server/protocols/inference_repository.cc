// The model control calls of GRPCInferenceService: what the repositories hold, load, unload.
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/inference/repository_orders.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_service.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

using Value = inference::ModelRepositoryParameter;
using Values = google::protobuf::Map<std::string, Value>;

// Repositories have no names here, and none in Triton.
absl::Status CheckRepository(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  return absl::UnimplementedError("repository_name is not served; leave it out");
}

NamedParameters ParametersOf(const Values& values) {
  NamedParameters parameters;
  for (const auto& [name, value] : values) {
    switch (value.parameter_choice_case()) {
      case Value::kBoolParam:
        parameters.emplace_back(name, value.bool_param());
        break;
      case Value::kInt64Param:
        parameters.emplace_back(name, value.int64_param());
        break;
      case Value::kBytesParam:
        parameters.emplace_back(name, std::string_view(value.bytes_param()));
        break;
      default:
        parameters.emplace_back(name, std::string_view(value.string_param()));
    }
  }
  return parameters;
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(grpc::CallbackServerContext* context,
                                                            const inference::RepositoryIndexRequest* request,
                                                            inference::RepositoryIndexResponse* response) {
  if (absl::Status named = CheckRepository(request->repository_name()); !named.ok()) {
    return FinishNow(context, ToGrpcStatus(named));
  }
  for (IndexEntry& entry : IndexOf(*deps_.catalog, request->ready())) {
    auto* model = response->add_models();
    model->set_name(std::move(entry.name));
    if (entry.version != 0) model->set_version(absl::StrCat(entry.version));
    model->set_state(std::string(NameOf(entry.state)));
    model->set_reason(std::move(entry.reason));
  }
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* /*response*/) {
  absl::Status named = CheckRepository(request->repository_name());
  auto config = LoadConfigOf(ParametersOf(request->parameters()));
  if (named.ok()) named = config.status();
  if (!named.ok()) return FinishNow(context, ToGrpcStatus(named));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const LogCallScope scope(LogCallOf(*context));
  deps_.catalog->Load(request->model_name(), *std::move(config),
                      [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* /*response*/) {
  absl::Status named = CheckRepository(request->repository_name());
  const auto with_dependents = UnloadsDependents(ParametersOf(request->parameters()));
  if (named.ok()) named = with_dependents.status();
  if (!named.ok()) return FinishNow(context, ToGrpcStatus(named));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const LogCallScope scope(LogCallOf(*context));
  deps_.catalog->Unload(request->model_name(), *with_dependents,
                        [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
  return reactor;
}

}  // namespace saccade::server
