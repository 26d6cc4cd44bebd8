// The model control calls of GRPCInferenceService: what the repositories hold, load, unload.
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/grpc/serialize_message.h"
#include "server/inference/repository_orders.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference/service.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/message_methods.h"

namespace saccade::server {
namespace {

using Value = inference::ModelRepositoryParameter;
using Values = google::protobuf::Map<std::string, Value>;

// A configuration may have a mebibyte.
constexpr size_t kMaxLoadBytes = size_t{2} << 20;

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

// Answers the call when the order was carried out. `convert` gives an error its code.
template <typename Response, typename Convert>
std::function<void(const absl::Status&)> Answering(std::shared_ptr<UnaryCall> call, Convert convert) {
  return [call = std::move(call), convert](const absl::Status& status) {
    if (status.ok()) {
      call->Respond(SerializeMessage(Response()));
    } else {
      call->Fail(ToCallEnd(convert(status)));
    }
  };
}

}  // namespace

void InferenceService::AddRepository(CallMethods& methods) {
  using inference::RepositoryIndexRequest, inference::RepositoryIndexResponse;
  using inference::RepositoryModelLoadRequest, inference::RepositoryModelLoadResponse;
  using inference::RepositoryModelUnloadRequest, inference::RepositoryModelUnloadResponse;
  methods.push_back(AnsweredMethod<RepositoryIndexRequest, RepositoryIndexResponse>(
      InferencePath("RepositoryIndex"),
      [this](const CallStart&, const RepositoryIndexRequest& request, RepositoryIndexResponse* response) {
        if (absl::Status named = CheckRepository(request.repository_name()); !named.ok()) return named;
        for (IndexEntry& entry : IndexOf(*deps_.catalog, request.ready())) {
          auto* model = response->add_models();
          model->set_name(std::move(entry.name));
          if (entry.version != 0) model->set_version(absl::StrCat(entry.version));
          model->set_state(std::string(NameOf(entry.state)));
          model->set_reason(std::move(entry.reason));
        }
        return absl::OkStatus();
      },
      options_.pool));
  methods.push_back(ParsedMethod<RepositoryModelLoadRequest>(
      InferencePath("RepositoryModelLoad"),
      [this](std::shared_ptr<UnaryCall> call, const RepositoryModelLoadRequest& request) {
        absl::Status named = CheckRepository(request.repository_name());
        auto config = LoadConfigOf(ParametersOf(request.parameters()));
        if (named.ok()) named = config.status();
        if (!named.ok()) return call->Fail(ToCallEnd(named));
        const LogCallScope scope(LogCallOf(call->start().metadata));
        deps_.catalog->Load(
            request.model_name(), *std::move(config),
            Answering<RepositoryModelLoadResponse>(std::move(call), [this](const absl::Status& status) {
              return deps_.inference->codes().OfLoad(status);
            }));
      },
      kMaxLoadBytes));
  methods.push_back(ParsedMethod<RepositoryModelUnloadRequest>(
      InferencePath("RepositoryModelUnload"),
      [this](std::shared_ptr<UnaryCall> call, const RepositoryModelUnloadRequest& request) {
        absl::Status named = CheckRepository(request.repository_name());
        const auto with_dependents = UnloadsDependents(ParametersOf(request.parameters()));
        if (named.ok()) named = with_dependents.status();
        if (!named.ok()) return call->Fail(ToCallEnd(named));
        const LogCallScope scope(LogCallOf(call->start().metadata));
        deps_.catalog->Unload(
            request.model_name(), *with_dependents,
            Answering<RepositoryModelUnloadResponse>(std::move(call), [this](const absl::Status& status) {
              return deps_.inference->codes().OfUnload(status);
            }));
      }));
}

}  // namespace saccade::server
