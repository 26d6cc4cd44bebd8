#include "server/protocols/inference_service.h"

#include <atomic>
#include <memory>
#include <utility>

#include "server/inference/extensions.h"
#include "server/protocols/call_records.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/inference_answer.h"
#include "server/protocols/inference_messages.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/inference_stream.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/predict_reactor.h"

namespace saccade::server {
namespace {

constexpr char kModelInfer[] = "inference.GRPCInferenceService/ModelInfer";

absl::StatusOr<ModelInterface> Describe(const Inference& inference, const std::string& name,
                                        const std::string& version) {
  auto number = inference.VersionOf(name, version);
  if (!number.ok()) return number.status();
  return inference.Describe(name, *number);
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

// Has the request, which the call's tensors point into until it is answered, and the answer's until it is
// sent.
class InferenceCall final : public PredictReactor {
 public:
  InferenceCall(grpc::ByteBuffer* response, int64_t max_message_bytes)
      : response_(response), max_message_bytes_(max_message_bytes) {}

  InferenceRequest& request() { return request_; }

  NamedCall Named(absl::string_view method, const CallRecord* record) const {
    return {.method = method,
            .model = request_.fields.model_name(),
            .id = request_.fields.id(),
            .record = record};
  }

  // Makes the answer ready to be sent.
  absl::Status Write(absl::StatusOr<TensorAnswer> outcome, grpc::CallbackServerContext* context,
                     SlowReaders* readers) {
    if (!outcome.ok()) return outcome.status();
    Sends(context, readers, outcome->charge);
    InferenceAnswer answer = ToAnswer(*std::move(outcome), request_.fields.id());
    if (absl::Status fits = CheckSize(answer, max_message_bytes_); !fits.ok()) return fits;
    *response_ = ToBytes(std::move(answer));
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
  const auto version = deps_.inference->VersionOf(request->name(), request->version());
  // An unknown model has no labels either.
  if (!version.ok() && !absl::IsNotFound(version.status())) {
    return FinishNow(context, ToGrpcStatus(version.status()));
  }
  response->set_ready(version.ok() && deps_.inference->CheckReady(request->name(), *version).ok());
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest* /*request*/,
    inference::ServerMetadataResponse* response) {
  response->set_name("saccade");
  response->set_version(options_.server_version);
  for (std::string& extension : Extensions(*deps_.shared_memory)) {
    response->add_extensions(std::move(extension));
  }
  return FinishNow(context, grpc::Status::OK);
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context,
                                                          const inference::ModelMetadataRequest* request,
                                                          inference::ModelMetadataResponse* response) {
  auto model = Describe(*deps_.inference, request->name(), request->version());
  if (model.ok()) ToMessage(*model, response);
  return FinishNow(context, ToGrpcStatus(model.status()));
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  const absl::Time arrival = deps_.clock->Now();
  if (!request->Valid()) return new EmptyCall(deps_.pipeline, deps_.clock, DeadlineOf(*context));
  auto call = std::make_unique<InferenceCall>(response, options_.max_message_bytes);
  const auto record = RecordOf(deps_.pipeline->deps().watch, *context, kModelInfer, arrival);
  if (record != nullptr) record->AddReceived(static_cast<int64_t>(request->Length()));
  const absl::Status received = ReadInferenceRequest(*request, call->request());
  const auto version_of = [this](absl::string_view model, absl::string_view version) {
    return deps_.inference->VersionOf(model, version);
  };
  auto parsed = received.ok() ? FromMessage(call->request(), *deps_.shared_memory, version_of, arrival,
                                            DeadlineOf(*context))
                              : absl::StatusOr<TensorCall>(received);
  if (!parsed.ok()) {
    deps_.pipeline->CountMalformed("oip", parsed.status().code());
    EndRecord(record.get(), parsed.status(), [] { return 0; });
    return FinishNow(context, ToGrpcStatus(parsed.status()));
  }
  if (record != nullptr) record->Describe(*parsed);
  parsed->record = record;
  parsed->client = ClientOfPeer(context->peer());
  parsed->cancellation = call->cancellation();
  InferenceCall* const reactor = call.release();
  deps_.inference->Infer(
      *std::move(parsed), [this, reactor, context, response, record](absl::StatusOr<TensorAnswer> answer) {
        const absl::Status written = reactor->Write(std::move(answer), context, options_.slow_readers);
        EndRecord(record.get(), written, [&] { return written.ok() ? response->Length() : 0; });
        LogFault(written, reactor->Named(kModelInfer, record.get()), *context);
        reactor->Finish(ToGrpcStatus(written, options_.retry_jitter, context));
      });
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceService::ModelStreamInfer(
    grpc::CallbackServerContext* context) {
  return InferenceStream::Start({.inference = deps_.inference,
                                 .pipeline = deps_.pipeline,
                                 .shared_memory = deps_.shared_memory,
                                 .clock = deps_.clock,
                                 .slow_readers = options_.slow_readers,
                                 .max_message_bytes = options_.max_message_bytes},
                                context);
}

}  // namespace saccade::server
