#include "client/bench/closed_loop.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <optional>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "client/messages.h"
#include "client/rpc_status.h"
#include "client/target.h"
#include "inference/grpc_service.grpc.pb.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {
namespace {

std::shared_ptr<grpc::Channel> OpenConnection(const std::string& url) {
  const auto target = ParseTarget(url);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // With an invalid address the first call fails.
  return grpc::CreateCustomChannel(target.ok() ? target->uri : url, grpc::InsecureChannelCredentials(),
                                   arguments);
}

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
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
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

// One client. Between Start and the decrement of the counter it is used by gRPC's threads, one at a time.
class ClosedLoop::Caller {
 public:
  Caller(const std::string& url, Method method, const std::string& request)
      : method_(method),
        channel_(OpenConnection(url)),
        vision_(v1::Vision::NewStub(channel_)),
        inference_(inference::GRPCInferenceService::NewStub(channel_)) {
    predict_request_.ParseFromString(request);
  }

  void Start(absl::Time end, absl::BlockingCounter* running) {
    end_ = end;
    running_ = running;
    samples_.clear();
    status_ = absl::OkStatus();
    Send();
  }

  const absl::Status& status() const { return status_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  void Send() {
    context_.emplace();
    context_->set_deadline(absl::ToChronoTime(end_ + absl::Seconds(30)));
    sent_ = absl::Now();
    const auto done = [this](const grpc::Status& status) { Receive(status); };
    if (method_ == Method::kPredict) {
      vision_->async()->Predict(&*context_, &predict_request_, &predict_response_, done);
    } else {
      inference_->async()->ServerLive(&*context_, &live_request_, &live_response_, done);
    }
  }

  void Receive(const grpc::Status& status) {
    const absl::Time now = absl::Now();
    if (!status.ok()) {
      status_ = FromRpcStatus(status, *context_);
      running_->DecrementCount();
      return;
    }
    samples_.push_back({now - sent_, {}});
    if (method_ == Method::kPredict) samples_.back().timings = ReadTimings(predict_response_);
    if (now >= end_) {
      running_->DecrementCount();
    } else {
      Send();
    }
  }

  const Method method_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Vision::Stub> vision_;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> inference_;
  v1::PredictRequest predict_request_;
  v1::PredictResponse predict_response_;
  inference::ServerLiveRequest live_request_;
  inference::ServerLiveResponse live_response_;
  std::optional<grpc::ClientContext> context_;
  absl::Time sent_;
  absl::Time end_;
  absl::BlockingCounter* running_ = nullptr;
  std::vector<Sample> samples_;
  absl::Status status_;
};

ClosedLoop::ClosedLoop(const std::string& url, Method method, const std::string& request, int clients) {
  for (int i = 0; i < clients; ++i) callers_.push_back(std::make_unique<Caller>(url, method, request));
}

ClosedLoop::~ClosedLoop() = default;

absl::Status ClosedLoop::Run(absl::Duration duration, Measurement& measurement) {
  absl::BlockingCounter running(static_cast<int>(callers_.size()));
  const absl::Time start = absl::Now();
  for (const auto& caller : callers_) caller->Start(start + duration, &running);
  running.Wait();
  measurement.elapsed += absl::Now() - start;
  for (const auto& caller : callers_) {
    if (!caller->status().ok()) return caller->status();
    measurement.samples.insert(measurement.samples.end(), caller->samples().begin(), caller->samples().end());
  }
  return absl::OkStatus();
}

}  // namespace saccade::client
