// The model control calls of GRPCInferenceService: what the repositories hold, load, unload.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/inference/errors.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_service.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

using Value = inference::ModelRepositoryParameter;
using Values = google::protobuf::Map<std::string, Value>;

// Triton's words.
const char* NameOf(ModelSnapshot::State state) {
  switch (state) {
    case ModelSnapshot::State::kLoading:
      return "LOADING";
    case ModelSnapshot::State::kReady:
      return "READY";
    case ModelSnapshot::State::kUnloading:
      return "UNLOADING";
    case ModelSnapshot::State::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

// Repositories have no names here, and none in Triton.
absl::Status CheckRepository(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  return absl::UnimplementedError("repository_name is not served; leave it out");
}

absl::Status Unknown(const std::string& name, absl::string_view known) {
  return Invalid(absl::StrCat("parameter ", Shown(name)), absl::StrCat("is unknown; expected ", known));
}

absl::StatusOr<std::optional<std::string>> ConfigOf(const Values& parameters) {
  std::optional<std::string> config;
  for (const auto& [name, value] : parameters) {
    if (absl::StartsWith(name, "file:")) {
      return absl::UnimplementedError(
          absl::StrCat("parameter ", Shown(name), ": files are not taken; put them into the repository"));
    }
    if (name != "config") return Unknown(name, "config");
    if (value.parameter_choice_case() != Value::kStringParam) {
      return Invalid("parameter config", "expected the configuration as a string of JSON");
    }
    config = value.string_param();
  }
  return config;
}

absl::StatusOr<bool> WithDependents(const Values& parameters) {
  bool with_dependents = false;
  for (const auto& [name, value] : parameters) {
    if (name != "unload_dependents") return Unknown(name, "unload_dependents");
    if (value.parameter_choice_case() != Value::kBoolParam)
      return Invalid("parameter unload_dependents", "expected a boolean");
    with_dependents = value.bool_param();
  }
  return with_dependents;
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(grpc::CallbackServerContext* context,
                                                            const inference::RepositoryIndexRequest* request,
                                                            inference::RepositoryIndexResponse* response) {
  if (absl::Status named = CheckRepository(request->repository_name()); !named.ok()) {
    return FinishNow(context, ToGrpcStatus(named));
  }
  for (IndexEntry& entry : rooms_.catalog->Index()) {
    if (request->ready() && entry.state != ModelSnapshot::State::kReady) continue;
    auto* model = response->add_models();
    model->set_name(std::move(entry.name));
    if (entry.version != 0) model->set_version(absl::StrCat(entry.version));
    model->set_state(NameOf(entry.state));
    model->set_reason(std::move(entry.reason));
  }
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* /*response*/) {
  absl::Status named = CheckRepository(request->repository_name());
  auto config = ConfigOf(request->parameters());
  if (named.ok()) named = config.status();
  if (!named.ok()) return FinishNow(context, ToGrpcStatus(named));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  rooms_.catalog->Load(request->model_name(), *std::move(config),
                       [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* /*response*/) {
  absl::Status named = CheckRepository(request->repository_name());
  const auto with_dependents = WithDependents(request->parameters());
  if (named.ok()) named = with_dependents.status();
  if (!named.ok()) return FinishNow(context, ToGrpcStatus(named));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  rooms_.catalog->Unload(request->model_name(), *with_dependents,
                         [reactor](const absl::Status& status) { reactor->Finish(ToGrpcStatus(status)); });
  return reactor;
}

}  // namespace saccade::server
