#include "client/cpp/testing/fake_daemon.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"
#include "client/cpp/testing/daemon_messages.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

grpc::Status ToRpc(const absl::Status& status, grpc::ServerContext* context) {
  if (const auto retry = RetryAfter(status)) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(absl::ToInt64Milliseconds(*retry)));
  }
  const auto details = status.GetPayload(kDetailsPayload);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      details ? std::string(*details) : "");
}

}  // namespace

class FakeDaemon::Services final : public v1::Vision::Service,
                                   public inference::GRPCInferenceService::Service,
                                   public grpc::health::v1::Health::Service {
 public:
  Services(State* state, std::shared_ptr<grpc::ServerCredentials> credentials) : state_(*state) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port_);
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.RegisterService(static_cast<v1::Vision::Service*>(this));
    builder.RegisterService(static_cast<inference::GRPCInferenceService::Service*>(this));
    builder.RegisterService(static_cast<grpc::health::v1::Health::Service*>(this));
    server_ = builder.BuildAndStart();
  }

  ~Services() override {
    {
      absl::MutexLock lock(&state_.mutex);
      state_.stopping = true;
    }
    server_->Shutdown();
  }

  int port() const { return port_; }

  grpc::Status Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                       v1::PredictResponse* response) override {
    FakeDaemon::Predict predict;
    {
      absl::MutexLock lock(&state_.mutex);
      if (absl::Status failure = Failure(*context); !failure.ok()) return ToRpc(failure, context);
      predict = state_.predict;
    }
    const auto result = predict(FromRequest(*request));
    if (!result.ok()) return ToRpc(result.status(), context);
    *response = ToResponse(*result);
    return grpc::Status::OK;
  }

  grpc::Status PredictStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::PredictStreamResponse, v1::PredictStreamRequest>* stream) override {
    FakeDaemon::Predict predict;
    int max = 0;
    absl::Status end;
    {
      absl::MutexLock lock(&state_.mutex);
      if (absl::Status failure = Failure(*context); !failure.ok()) return ToRpc(failure, context);
      predict = state_.predict;
      max = state_.max_streamed;
      end = state_.stream_end;
    }
    v1::PredictStreamRequest item;
    for (int index = 0; index < max; ++index) {
      if (!stream->Read(&item)) return grpc::Status::OK;
      FakeRequest request = FromRequest(item.request());
      if (item.has_timeout()) {
        request.timeout = absl::Seconds(item.timeout().seconds()) + absl::Nanoseconds(item.timeout().nanos());
      }
      v1::PredictStreamResponse response;
      response.set_index(index);
      response.set_request_id(item.request().request_id());
      if (const auto result = predict(request); result.ok()) {
        *response.mutable_answer() = ToResponse(*result);
      } else {
        *response.mutable_error() = ToItemError(result.status());
      }
      if (!stream->Write(response)) return grpc::Status::CANCELLED;
    }
    return ToRpc(end, context);
  }

  grpc::Status Restore(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::RestoreResponse, v1::RestoreRequest>* stream) override {
    FakeDaemon::Predict predict;
    FakeRestore restore;
    {
      absl::MutexLock lock(&state_.mutex);
      ++state_.restores;
      if (absl::Status failure = Failure(*context); !failure.ok()) return ToRpc(failure, context);
      predict = state_.predict;
      restore = state_.restore;
    }
    v1::RestoreRequest part;
    if (!stream->Read(&part) || !part.has_header()) {
      return ToRpc(absl::InvalidArgumentError("there is no header"), context);
    }
    if (!restore.early.ok()) return ToRpc(restore.early, context);
    FakeRequest request = FromHeader(part.header());
    while (stream->Read(&part)) {
      request.picture += part.data();
      request.part_bytes.push_back(part.data().size());
    }
    v1::RestoreResponse response;
    do {
      for (const double done : restore.progress) {
        response.mutable_progress()->set_done(done);
        if (!stream->Write(response)) return grpc::Status::CANCELLED;
      }
    } while (restore.endless);
    const auto result = predict(request);
    if (!result.ok()) return ToRpc(result.status(), context);
    v1::PredictResponse answer = ToResponse(*result);
    std::string voxels;
    if (answer.has_restoration()) voxels.swap(*answer.mutable_restoration()->mutable_voxels());
    *response.mutable_answer() = answer;
    stream->Write(response);
    for (size_t at = 0; at < voxels.size(); at += restore.part_bytes) {
      response.set_voxels(voxels.substr(at, restore.part_bytes));
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    for (const Model& model : state_.models) *response->add_models() = ToProto(model);
    return ToRpc(Failure(*context), context);
  }

  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::Model* response) override {
    absl::MutexLock lock(&state_.mutex);
    for (const Model& model : state_.models) {
      if (model.name != request->model()) continue;
      *response = ToProto(model);
      return ToRpc(Failure(*context), context);
    }
    return ToRpc(absl::NotFoundError(absl::StrCat("no model '", request->model(), "'")), context);
  }

  grpc::Status ServerLive(grpc::ServerContext* context, const inference::ServerLiveRequest*,
                          inference::ServerLiveResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    response->set_live(true);
    return ToRpc(Failure(*context), context);
  }

  grpc::Status ServerReady(grpc::ServerContext* context, const inference::ServerReadyRequest*,
                           inference::ServerReadyResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    response->set_ready(state_.health[""]);
    return ToRpc(Failure(*context), context);
  }

  grpc::Status ServerMetadata(grpc::ServerContext* context, const inference::ServerMetadataRequest*,
                              inference::ServerMetadataResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    response->set_name("saccade");
    response->set_version("1.2.3");
    response->add_extensions("health");
    return ToRpc(Failure(*context), context);
  }

  grpc::Status Check(grpc::ServerContext* context, const HealthCheckRequest* request,
                     HealthCheckResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    if (!state_.health_failure.ok()) return ToRpc(state_.health_failure, context);
    const auto found = state_.health.find(request->service());
    if (found == state_.health.end()) return ToRpc(absl::NotFoundError("unknown service"), context);
    response->set_status(found->second ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context, const HealthCheckRequest* request,
                     grpc::ServerWriter<HealthCheckResponse>* writer) override {
    absl::MutexLock lock(&state_.mutex);
    if (!state_.health_failure.ok()) return ToRpc(state_.health_failure, context);
    HealthCheckResponse response;
    response.set_status(HealthCheckResponse::NOT_SERVING);
    if (!state_.health[request->service()]) {
      writer->Write(response);
      ++state_.watchers;
      const std::pair<State*, std::string> watched(&state_, request->service());
      state_.mutex.Await(absl::Condition(
          +[](const std::pair<State*, std::string>* about) ABSL_NO_THREAD_SAFETY_ANALYSIS {
            return about->first->stopping || about->first->health[about->second];
          },
          &watched));
    }
    if (!state_.stopping) response.set_status(HealthCheckResponse::SERVING);
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status ModelStatistics(grpc::ServerContext* context, const inference::ModelStatisticsRequest*,
                               inference::ModelStatisticsResponse* response) override {
    absl::MutexLock lock(&state_.mutex);
    if (!state_.statistics) return ToRpc(absl::UnimplementedError("no statistics here"), context);
    if (absl::Status failure = Failure(*context); !failure.ok()) return ToRpc(failure, context);
    const auto statistics = state_.statistics();
    if (!statistics.ok()) return ToRpc(statistics.status(), context);
    for (const client::ModelStatistics& model : *statistics) *response->add_model_stats() = ToProto(model);
    return grpc::Status::OK;
  }

 private:
  // The error that the current call must return, or OK.
  absl::Status Failure(const grpc::ServerContext& context) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.mutex) {
    if (!state_.failure.ok() || state_.authorization.empty()) return state_.failure;
    const auto sent = context.client_metadata().find("authorization");
    const bool known = sent != context.client_metadata().end() &&
                       absl::string_view(sent->second.data(), sent->second.size()) == state_.authorization;
    return known ? absl::OkStatus() : absl::UnauthenticatedError("the token is missing or unknown");
  }

  State& state_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

FakeDaemon::FakeDaemon() : FakeDaemon(grpc::InsecureServerCredentials()) {}

FakeDaemon::FakeDaemon(std::shared_ptr<grpc::ServerCredentials> credentials)
    : services_(std::make_unique<Services>(&state_, std::move(credentials))) {
  url_ = absl::StrCat("127.0.0.1:", services_->port());
  SetPredict([](const FakeRequest&) { return absl::UnimplementedError("the test gave no answer"); });
}

FakeDaemon::~FakeDaemon() = default;

void FakeDaemon::SetPredict(Predict predict) {
  absl::MutexLock lock(&state_.mutex);
  state_.predict = std::move(predict);
}

void FakeDaemon::SetRestore(FakeRestore restore) {
  absl::MutexLock lock(&state_.mutex);
  state_.restore = std::move(restore);
}

void FakeDaemon::EndStreamsAfter(int requests, absl::Status status) {
  absl::MutexLock lock(&state_.mutex);
  state_.max_streamed = requests;
  state_.stream_end = std::move(status);
}

void FakeDaemon::SetModels(std::vector<Model> models) {
  absl::MutexLock lock(&state_.mutex);
  state_.models = std::move(models);
}

void FakeDaemon::SetHealth(const std::string& service, bool serving) {
  absl::MutexLock lock(&state_.mutex);
  state_.health[service] = serving;
}

void FakeDaemon::FailWith(absl::Status status) {
  absl::MutexLock lock(&state_.mutex);
  state_.failure = std::move(status);
}

void FakeDaemon::FailHealthWith(absl::Status status) {
  absl::MutexLock lock(&state_.mutex);
  state_.health_failure = std::move(status);
}

void FakeDaemon::RequireAuthorization(std::string authorization) {
  absl::MutexLock lock(&state_.mutex);
  state_.authorization = std::move(authorization);
}

void FakeDaemon::SetStatistics(Statistics statistics) {
  absl::MutexLock lock(&state_.mutex);
  state_.statistics = std::move(statistics);
}

int FakeDaemon::restores() {
  absl::MutexLock lock(&state_.mutex);
  return state_.restores;
}

void FakeDaemon::AwaitWatcher() {
  absl::MutexLock lock(&state_.mutex);
  state_.mutex.Await(absl::Condition(
      +[](State* state) ABSL_NO_THREAD_SAFETY_ANALYSIS { return state->watchers > 0; }, &state_));
}

}  // namespace saccade::client
