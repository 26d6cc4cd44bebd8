#include "client/cpp/client.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/connection_failure.h"
#include "client/cpp/credentials.h"
#include "client/cpp/messages.h"
#include "client/cpp/restore_call.h"
#include "client/cpp/rpc_status.h"
#include "client/cpp/statistics_messages.h"
#include "client/cpp/status.h"
#include "client/cpp/stream_call.h"
#include "client/cpp/target.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "inference/grpc_service.grpc.pb.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {
namespace {

// gRPC's server answers calls that arrive while its port closes with CANCELLED. gRPC never retries a call
// that the caller has cancelled. Health's Watch has no policy: WaitUntilServing() repeats it, and its
// failures must not take the tokens of other calls.
constexpr char kRetryConfig[] = R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{"service": "saccade.v1.Vision"}, {"service": "inference.GRPCInferenceService"},
             {"service": "grpc.health.v1.Health", "method": "Check"}],
    "retryPolicy": {
      "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]
    }
  }],
  "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}
})";

constexpr char kPlainConfig[] = R"({"loadBalancingConfig": [{"round_robin": {}}]})";

// How long the daemon may take to answer a ping.
constexpr absl::Duration kPingTimeout = absl::Seconds(5);

// Pings more frequent than this are of no use, and a daemon bounds them.
constexpr absl::Duration kMinKeepalive = absl::Seconds(1);

// Pause before the next attempt if the daemon ended or rejected the watch.
constexpr absl::Duration kWatchRetryDelay = absl::Milliseconds(100);

// Size of a volume's parts: large enough to make the overhead of a message negligible, small enough to hold
// in memory.
constexpr int64_t kMaxPartBytes = 1 << 20;

// Room for a call's metadata beside its message in the bytes that gRPC keeps for a retry.
constexpr int64_t kMaxMetadataBytes = 64 << 10;

grpc::ChannelArguments MakeArguments(const ClientOptions& options, const Target& target, bool retry) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  arguments.SetServiceConfigJSON(retry ? kRetryConfig : kPlainConfig);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, retry ? 1 : 0);
  // By default gRPC does not retry a call of more than 256 KiB, which most pictures are.
  if (retry) {
    arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE,
                     static_cast<int>(std::min<int64_t>(options.max_message_bytes + kMaxMetadataBytes,
                                                        std::numeric_limits<int>::max())));
  }
  // By default gRPC waits one second before it reconnects, later up to two minutes: too long for a daemon
  // that restarts within a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  if (options.keepalive != absl::InfiniteDuration()) {
    arguments.SetInt(
        GRPC_ARG_KEEPALIVE_TIME_MS,
        static_cast<int>(absl::ToInt64Milliseconds(std::min(options.keepalive, absl::Hours(1)))));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                     static_cast<int>(absl::ToInt64Milliseconds(kPingTimeout)));
    // GRPC_ARG_PING_TIMEOUT_MS of newer versions of gRPC, which otherwise wait a minute. Older ones ignore
    // it.
    arguments.SetInt("grpc.http2.ping_timeout_ms", static_cast<int>(absl::ToInt64Milliseconds(kPingTimeout)));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  if (target.local) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return arguments;
}

std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

Health FromProto(grpc::health::v1::HealthCheckResponse::ServingStatus status) {
  switch (status) {
    case grpc::health::v1::HealthCheckResponse::SERVING:
      return Health::kServing;
    case grpc::health::v1::HealthCheckResponse::NOT_SERVING:
      return Health::kNotServing;
    default:
      return Health::kUnknown;
  }
}

}  // namespace

struct Client::Transport {
  Transport(Target where, std::string authorized, std::shared_ptr<grpc::Channel> for_calls,
            std::shared_ptr<grpc::Channel> for_streams)
      : target(std::move(where)),
        authorization(std::move(authorized)),
        channel(std::move(for_calls)),
        stream_channel(std::move(for_streams)),
        vision(v1::Vision::NewStub(channel)),
        stream_vision(v1::Vision::NewStub(stream_channel)),
        oip(inference::GRPCInferenceService::NewStub(channel)),
        health(grpc::health::v1::Health::NewStub(channel)) {}

  // Adds the token to a call. Every call needs it.
  void Authorize(grpc::ClientContext& context) const {
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  }

  // Makes one unary call with the timeout of the options.
  template <typename Stub, typename Request, typename Response>
  absl::Status Call(const ClientOptions& options, Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) const {
    grpc::ClientContext context;
    Authorize(context);
    context.set_deadline(DeadlineAfter(options.timeout));
    return Explain(options, *channel, (stub.*method)(&context, request, &response), context);
  }

  // `start` is the time before the request was built.
  template <typename TaskAnswer>
  absl::StatusOr<TaskAnswer> Predict(const ClientOptions& options, const v1::PredictRequest& request,
                                     absl::Time start) const {
    if (absl::Status fits = CheckSize(request, options.max_message_bytes); !fits.ok()) return fits;
    v1::PredictResponse response;
    const absl::Status status = Call(options, *vision, &v1::Vision::Stub::Predict, request, response);
    if (!status.ok()) return status;
    absl::StatusOr<TaskAnswer> result = FromResponse<TaskAnswer>(response);
    if (result.ok()) result->timings.round_trip = absl::Now() - start;
    return result;
  }

  // Replaces the messages of the most frequent failures: gRPC's name neither the address nor the timeout.
  // `used` is the channel of the call.
  absl::Status Explain(const ClientOptions& options, grpc::Channel& used, const grpc::Status& status,
                       const grpc::ClientContext& context) const {
    absl::Status result = FromRpcStatus(status, context);
    if (absl::IsUnavailable(result) && used.GetState(false) != GRPC_CHANNEL_READY &&
        context.GetServerInitialMetadata().empty() && context.GetServerTrailingMetadata().empty()) {
      result = ExplainConnection(options, target, status.error_message());
    } else if (absl::IsDeadlineExceeded(result)) {
      absl::Status late = absl::DeadlineExceededError(absl::StrCat("no answer from ", options.url, " within ",
                                                                   absl::FormatDuration(options.timeout),
                                                                   " (", status.error_message(), ")"));
      // The daemon rejects a request that would be late with details, and with a retry hint.
      result.ForEachPayload(
          [&late](absl::string_view type, const absl::Cord& payload) { late.SetPayload(type, payload); });
      result = std::move(late);
    }
    return result;
  }

  // Why a model is not served, as far as the health watches so far have shown.
  struct Unserved {
    std::string why = "it did not answer";
    // gRPC's message of the failure that `why` explains; empty if `why` is not about a failure.
    std::string failure = {};
  };

  // Watches the health of `model` on one stream. OK once it is SERVING; else the status with which the stream
  // ended, and `unserved` is updated.
  absl::Status WatchOnce(const ClientOptions& options, absl::string_view model, absl::Time deadline,
                         Unserved& unserved) const {
    grpc::ClientContext context;
    Authorize(context);
    context.set_deadline(absl::ToChronoTime(deadline));
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(std::string(model));
    const auto reader = health->Watch(&context, request);
    grpc::health::v1::HealthCheckResponse response;
    while (reader->Read(&response)) {
      if (FromProto(response.status()) == Health::kServing) {
        context.TryCancel();
        reader->Finish();
        return absl::OkStatus();
      }
      unserved.why = absl::StrCat(
          "its health is ", grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status()));
      unserved.failure.clear();
    }
    const grpc::Status status = reader->Finish();
    // A daemon that shuts down may end the stream with OK although the model is not served.
    if (status.ok()) return absl::UnavailableError("the daemon ended the health watch");
    absl::Status ended = FromRpcStatus(status, context);
    // An explanation may take a TLS handshake, so the same failure is explained once.
    if (!absl::IsDeadlineExceeded(ended) && status.error_message() != unserved.failure) {
      unserved.why = std::string(Explain(options, *channel, status, context).message());
      unserved.failure = status.error_message();
    }
    return ended;
  }

  const Target target;
  const std::string authorization;
  const std::shared_ptr<grpc::Channel> channel;
  // Without retries: gRPC would keep what a stream has sent, up to the size of a message, until the first
  // response, whether or not it has a retry policy. Equal to `channel` if that has no retries either.
  const std::shared_ptr<grpc::Channel> stream_channel;
  const std::unique_ptr<v1::Vision::Stub> vision;
  const std::unique_ptr<v1::Vision::Stub> stream_vision;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> oip;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  const absl::StatusOr<Target> target = ParseTarget(options.url);
  if (!target.ok()) return target.status();
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("the timeout is ", absl::FormatDuration(options.timeout),
                                                   "; expected a positive duration"));
  }
  if (options.max_message_bytes < 1 || options.max_message_bytes > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("max_message_bytes is ", options.max_message_bytes,
                                                   "; expected 1 to ", std::numeric_limits<int>::max()));
  }
  if (options.keepalive < kMinKeepalive) {
    return absl::InvalidArgumentError(absl::StrCat("keepalive is ", absl::FormatDuration(options.keepalive),
                                                   "; expected at least ",
                                                   absl::FormatDuration(kMinKeepalive)));
  }
  const absl::StatusOr<Credentials> credentials = MakeCredentials(options, *target);
  if (!credentials.ok()) return credentials.status();
  const std::string addresses = ShuffledAddresses(target->uri);
  const auto channel = grpc::CreateCustomChannel(addresses, credentials->channel,
                                                 MakeArguments(options, *target, options.retry));
  const auto stream_channel =
      options.retry
          ? grpc::CreateCustomChannel(addresses, credentials->channel, MakeArguments(options, *target, false))
          : channel;
  auto transport = std::make_unique<Transport>(*target, credentials->authorization, channel, stream_channel);
  return std::unique_ptr<Client>(new Client(std::move(options), std::move(transport)));
}

Client::Client(ClientOptions options, std::unique_ptr<Transport> transport)
    : options_(std::move(options)), transport_(std::move(transport)) {}

Client::~Client() = default;

absl::StatusOr<Classification> Client::Classify(absl::string_view model, absl::string_view picture,
                                                const ClassifyOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<Classification>(options_, ToRequest(model, picture, options), start);
}

absl::StatusOr<Detections> Client::Detect(absl::string_view model, absl::string_view picture,
                                          const DetectOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<Detections>(options_, ToRequest(model, picture, options), start);
}

absl::StatusOr<Segmentation> Client::Segment(absl::string_view model, absl::string_view picture,
                                             const SegmentOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<Segmentation>(options_, ToRequest(model, picture, options), start);
}

absl::StatusOr<Disparity> Client::Stereo(absl::string_view model, absl::string_view left,
                                         absl::string_view right, const StereoOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<Disparity>(options_, ToRequest(model, left, right, options), start);
}

absl::StatusOr<DepthMap> Client::Depth(absl::string_view model, absl::string_view picture,
                                       const DepthOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<DepthMap>(options_, ToRequest(model, picture, options), start);
}

absl::StatusOr<Embedding> Client::Embed(absl::string_view model, absl::string_view picture,
                                        const EmbedOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<Embedding>(options_, ToRequest(model, picture, options), start);
}

absl::StatusOr<Actions> Client::Actions(absl::string_view model, absl::string_view video,
                                        const ActionOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<client::Actions>(options_, ToRequest(model, video, options), start);
}

absl::StatusOr<Actions> Client::Actions(absl::string_view model, const std::vector<std::string>& frames,
                                        double frames_per_second, const ActionOptions& options) {
  const absl::Time start = absl::Now();
  return transport_->Predict<client::Actions>(options_, ToRequest(model, frames, frames_per_second, options),
                                              start);
}

VolumeSource VolumeFrom(absl::string_view bytes, std::optional<VolumeShape> raw) {
  VolumeSource source;
  source.bytes = static_cast<int64_t>(bytes.size());
  source.read = [rest = bytes](char* to, size_t max) mutable -> absl::StatusOr<size_t> {
    const size_t count = std::min(max, rest.size());
    if (count > 0) std::memcpy(to, rest.data(), count);
    rest.remove_prefix(count);
    return count;
  };
  source.raw = raw;
  return source;
}

absl::StatusOr<Restoration> Client::Restore(absl::string_view model, const VolumeSource& volume,
                                            const RestoreOptions& options, const RestoreProgress& progress) {
  const absl::Time start = absl::Now();
  grpc::ClientContext context;
  transport_->Authorize(context);
  context.set_deadline(DeadlineAfter(options_.timeout));
  RestoreCall call(*transport_->stream_vision, context);
  // Half a message leaves room for the other fields.
  const int64_t part = std::clamp<int64_t>(options_.max_message_bytes / 2, 1, kMaxPartBytes);
  absl::Status status = call.Send(ToHeader(model, volume, options), volume, static_cast<size_t>(part));
  if (status.ok()) status = call.Receive(progress);
  if (!status.ok()) context.TryCancel();
  const grpc::Status ended = call.Finish();
  if (!status.ok()) return status;
  if (!ended.ok()) return transport_->Explain(options_, *transport_->stream_channel, ended, context);
  absl::StatusOr<Restoration> answer = call.TakeAnswer();
  if (answer.ok()) answer->timings.round_trip = absl::Now() - start;
  return answer;
}

absl::StatusOr<std::unique_ptr<Stream>> Client::OpenStream(const StreamOptions& options) {
  for (const absl::Duration timeout : {options.timeout, options.item_timeout}) {
    if (timeout > absl::ZeroDuration()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a timeout of the stream is ", absl::FormatDuration(timeout), "; expected a positive duration"));
  }
  Stream::Call::Options call;
  call.stream = options;
  call.max_message_bytes = options_.max_message_bytes;
  call.authorize = [this](grpc::ClientContext& context) { transport_->Authorize(context); };
  call.explain = [this, timeout = options.timeout](const grpc::Status& status,
                                                   const grpc::ClientContext& context) {
    ClientOptions of_stream = options_;
    of_stream.timeout = timeout;
    return transport_->Explain(of_stream, *transport_->stream_channel, status, context);
  };
  return std::unique_ptr<Stream>(
      new Stream(std::make_unique<Stream::Call>(std::move(call), *transport_->stream_vision)));
}

absl::StatusOr<std::vector<Model>> Client::ListModels() {
  v1::ListModelsResponse response;
  const absl::Status status = transport_->Call(options_, *transport_->vision, &v1::Vision::Stub::ListModels,
                                               v1::ListModelsRequest(), response);
  if (!status.ok()) return status;
  std::vector<Model> models;
  models.reserve(response.models_size());
  for (const v1::Model& model : response.models()) models.push_back(FromProto(model));
  return models;
}

absl::StatusOr<Model> Client::GetModel(absl::string_view model, int64_t version) {
  v1::GetModelRequest request;
  request.set_model(std::string(model));
  request.set_version(version);
  v1::Model response;
  const absl::Status status =
      transport_->Call(options_, *transport_->vision, &v1::Vision::Stub::GetModel, request, response);
  if (!status.ok()) return status;
  return FromProto(response);
}

absl::StatusOr<Health> Client::CheckHealth(absl::string_view model) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(std::string(model));
  grpc::health::v1::HealthCheckResponse response;
  const absl::Status status = transport_->Call(options_, *transport_->health,
                                               &grpc::health::v1::Health::Stub::Check, request, response);
  if (!status.ok()) return status;
  return FromProto(response.status());
}

absl::Status Client::WaitUntilServing(absl::string_view model, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  Transport::Unserved unserved;
  while (true) {
    absl::Status status = transport_->WatchOnce(options_, model, deadline, unserved);
    // The next attempt would be refused as well.
    const bool refused =
        absl::IsUnimplemented(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
    if (status.ok() || refused) return status;
    if (absl::Now() + kWatchRetryDelay >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          model.empty() ? std::string("the daemon") : absl::StrCat("model '", model, "'"), " at ",
          options_.url, " was not serving within ", absl::FormatDuration(timeout), ": ", unserved.why));
    }
    absl::SleepFor(kWatchRetryDelay);
  }
}

absl::StatusOr<bool> Client::ServerLive() {
  inference::ServerLiveResponse response;
  const absl::Status status =
      transport_->Call(options_, *transport_->oip, &inference::GRPCInferenceService::Stub::ServerLive,
                       inference::ServerLiveRequest(), response);
  if (!status.ok()) return status;
  return response.live();
}

absl::StatusOr<bool> Client::ServerReady() {
  inference::ServerReadyResponse response;
  const absl::Status status =
      transport_->Call(options_, *transport_->oip, &inference::GRPCInferenceService::Stub::ServerReady,
                       inference::ServerReadyRequest(), response);
  if (!status.ok()) return status;
  return response.ready();
}

absl::StatusOr<ServerMetadata> Client::GetServerMetadata() {
  inference::ServerMetadataResponse response;
  const absl::Status status =
      transport_->Call(options_, *transport_->oip, &inference::GRPCInferenceService::Stub::ServerMetadata,
                       inference::ServerMetadataRequest(), response);
  if (!status.ok()) return status;
  return ServerMetadata{
      response.name(), response.version(), {response.extensions().begin(), response.extensions().end()}};
}

absl::StatusOr<std::vector<ModelStatistics>> Client::GetStatistics() {
  inference::ModelStatisticsResponse response;
  const absl::Status status =
      transport_->Call(options_, *transport_->oip, &inference::GRPCInferenceService::Stub::ModelStatistics,
                       inference::ModelStatisticsRequest(), response);
  if (!status.ok()) return status;
  return FromProto(response);
}

}  // namespace saccade::client
