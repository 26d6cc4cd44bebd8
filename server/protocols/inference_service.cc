#include "server/protocols/inference_service.h"

#include <atomic>
#include <memory>
#include <utility>

#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_outputs.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

absl::StatusOr<ModelSnapshot> ReadySnapshot(const Catalog& catalog, const std::string& name,
                                            const std::string& version) {
  auto number = ParseVersion(version);
  if (!number.ok()) return number.status();
  auto model = catalog.FindReady(name, *number);
  if (!model.ok()) return model.status();
  return (*model)->Snapshot();
}

// A call without any message. Mostly it has ended before its message came, which gRPC tells only later: it is
// counted when that is known. Deletes itself when the call is over.
class EmptyCall final : public grpc::ServerUnaryReactor {
 public:
  EmptyCall(Pipeline* pipeline, Clock* clock, absl::Time deadline)
      : pipeline_(pipeline), clock_(clock), deadline_(deadline) {
    Finish(ToGrpcStatus(absl::InvalidArgumentError("the call brought no ModelInferRequest")));
  }

  void OnCancel() override { ended_before_ = true; }

  void OnDone() override {
    pipeline_->CountMalformed("oip", Code());
    delete this;
  }

 private:
  absl::StatusCode Code() const {
    if (!ended_before_) return absl::StatusCode::kInvalidArgument;
    return deadline_ <= clock_->Now() ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled;
  }

  Pipeline* const pipeline_;
  Clock* const clock_;
  const absl::Time deadline_;
  std::atomic<bool> ended_before_ = false;
};

// Has the request, which the pipeline points into until it answers.
class InferenceCall final : public PredictReactor {
 public:
  InferenceCall(grpc::ByteBuffer* response, int64_t max_message_bytes)
      : response_(response), max_message_bytes_(max_message_bytes) {}

  InferenceRequest& request() { return request_; }

  // Makes the answer ready to be sent.
  absl::Status Write(absl::StatusOr<Response> response) {
    if (!response.ok()) return response.status();
    auto answer = ToAnswer(std::make_shared<const Response>(*std::move(response)), request_.fields);
    if (!answer.ok()) return answer.status();
    if (absl::Status fits = CheckSize(*answer, max_message_bytes_); !fits.ok()) return fits;
    *response_ = ToBytes(*std::move(answer));
    return absl::OkStatus();
  }

 private:
  grpc::ByteBuffer* const response_;
  const int64_t max_message_bytes_;
  InferenceRequest request_;
};

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest* /*request*/,
                                                       inference::ServerLiveResponse* response) {
  response->set_live(true);
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const inference::ServerReadyRequest* /*request*/,
                                                        inference::ServerReadyResponse* response) {
  response->set_ready(options_.ready());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  auto version = ParseVersion(request->version());
  if (!version.ok()) return FinishNow(context, ToGrpcStatus(version.status()));
  response->set_ready(catalog_->FindReady(request->name(), *version).ok());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest* /*request*/,
    inference::ServerMetadataResponse* response) {
  // No extension is listed before it works.
  response->set_name("saccade");
  response->set_version(options_.server_version);
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context,
                                                          const inference::ModelMetadataRequest* request,
                                                          inference::ModelMetadataResponse* response) {
  auto model = ReadySnapshot(*catalog_, request->name(), request->version());
  if (model.ok()) ToMessage(*model, response);
  return FinishNow(context, ToGrpcStatus(model.status()));
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  const absl::Time arrival = clock_->Now();
  if (!request->Valid()) return new EmptyCall(pipeline_, clock_, DeadlineOf(*context));
  auto call = std::make_unique<InferenceCall>(response, options_.max_message_bytes);
  const absl::Status received = ReadInferenceRequest(*request, call->request());
  auto parsed = received.ok() ? FromMessage(call->request(), arrival, DeadlineOf(*context))
                              : absl::StatusOr<Request>(received);
  if (!parsed.ok()) {
    pipeline_->CountMalformed("oip", parsed.status().code());
    return FinishNow(context, ToGrpcStatus(parsed.status()));
  }
  parsed->client = ClientOfPeer(context->peer());
  parsed->cancellation = call->cancellation();
  InferenceCall* const reactor = call.release();
  pipeline_->Predict(*std::move(parsed), [this, reactor, context](absl::StatusOr<Response> answer) {
    reactor->Finish(ToGrpcStatus(reactor->Write(std::move(answer)), options_.retry_jitter, context));
  });
  return reactor;
}

}  // namespace saccade::server
