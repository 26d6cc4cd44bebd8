#include "client/load/unary_calls.h"

#include <grpcpp/client_context.h>

#include <optional>
#include <utility>

#include "client/cpp/messages.h"
#include "client/cpp/rpc_status.h"
#include "client/load/connection.h"
#include "inference/grpc_service.grpc.pb.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

}  // namespace

std::string RawRequest(const std::string& model, int width, int height) {
  v1::PredictRequest request;
  request.set_model(model);
  v1::RawPicture* raw = request.mutable_raw();
  raw->set_width(width);
  raw->set_height(height);
  raw->set_order(v1::RawPicture::RGB);
  raw->set_pixels(std::string(static_cast<size_t>(width) * height * 3, '\x80'));
  return request.SerializeAsString();
}

absl::StatusOr<std::string> CallOnce(const std::string& url, Method method, const std::string& request) {
  const auto channel = OpenConnection(url);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  if (method == Method::kPredict) {
    v1::PredictRequest parsed;
    parsed.ParseFromString(request);
    v1::PredictResponse response;
    const grpc::Status status = v1::Vision::NewStub(channel)->Predict(&context, parsed, &response);
    if (!status.ok()) return FromRpcStatus(status, context);
    return response.SerializeAsString();
  }
  inference::ServerLiveResponse response;
  const grpc::Status status =
      inference::GRPCInferenceService::NewStub(channel)->ServerLive(&context, {}, &response);
  if (!status.ok()) return FromRpcStatus(status, context);
  return response.SerializeAsString();
}

// Used by one thread at a time: by Start, then by gRPC's callback. Its messages are reused, as a client that
// sends one request after the other would do.
class UnaryCalls::Connection {
 public:
  Connection(const std::string& url, Method method, const std::string& request) : method_(method) {
    const auto channel = OpenConnection(url);
    vision_ = v1::Vision::NewStub(channel);
    inference_ = inference::GRPCInferenceService::NewStub(channel);
    predict_request_.ParseFromString(request);
  }

  void Start(absl::Time deadline, CallDone done) {
    context_.emplace();
    context_->set_deadline(absl::ToChronoTime(deadline));
    auto ended = [this, done = std::move(done)](const grpc::Status& status) { done(ResultOf(status)); };
    if (method_ == Method::kPredict) {
      vision_->async()->Predict(&*context_, &predict_request_, &predict_response_, std::move(ended));
    } else {
      inference_->async()->ServerLive(&*context_, &live_request_, &live_response_, std::move(ended));
    }
  }

 private:
  CallResult ResultOf(const grpc::Status& status) const {
    if (!status.ok()) return {.status = FromRpcStatus(status, *context_)};
    if (method_ == Method::kServerLive) return {.status = absl::OkStatus()};
    return {.status = absl::OkStatus(), .timings = ReadTimings(predict_response_)};
  }

  const Method method_;
  std::unique_ptr<v1::Vision::Stub> vision_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> inference_;
  v1::PredictRequest predict_request_;
  v1::PredictResponse predict_response_;
  inference::ServerLiveRequest live_request_;
  inference::ServerLiveResponse live_response_;
  std::optional<grpc::ClientContext> context_;
};

UnaryCalls::UnaryCalls(const std::string& url, Method method, const std::string& request, int connections) {
  for (int i = 0; i < connections; ++i) {
    connections_.push_back(std::make_unique<Connection>(url, method, request));
  }
}

UnaryCalls::~UnaryCalls() = default;

StartCall UnaryCalls::starter() {
  return [this](const LoadCall& call, CallDone done) {
    connections_[call.connection]->Start(call.due + kTimeout, std::move(done));
  };
}

}  // namespace saccade::client
