// The daemon's services on our server and on gRPC's own: a client must not be able to tell them apart. Codes,
// messages, details, metadata before and after, and answers of each call are compared.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "inference/grpc_service.pb.h"
#include "saccade/v1/vision.pb.h"
#include "server/grpc/health.h"
#include "server/grpc/reflection.h"
#include "server/grpc/testing/grpc_runtime.h"
#include "server/grpc/testing/test_front.h"
#include "server/protocols/inference/service.h"
#include "server/protocols/testing/model_pipeline.h"
#include "server/protocols/vision/service.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using grpc::StatusCode;

constexpr int kMaxMessage = 1 << 20;
constexpr char kMalformed[] = "\xFF\xFF";
// What Progress, whose number depends on the time, is shown as.
constexpr char kProgress[] = "progress";

// What is measured differs from call to call.
template <typename M>
void ForgetTimes(M& /*message*/) {}
void ForgetTimes(v1::PredictResponse& message) { message.clear_timings(); }
void ForgetTimes(v1::PredictStreamResponse& message) {
  if (message.has_answer()) ForgetTimes(*message.mutable_answer());
}
void ForgetTimes(v1::RestoreResponse& message) {
  if (message.has_answer()) ForgetTimes(*message.mutable_answer());
}
void ForgetTimes(v1::Model& message) { message.clear_timing(); }

// A message of an answer as text, in which the entries of maps are sorted.
template <typename M>
std::string Shown(const std::string& bytes) {
  M message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  ForgetTimes(message);
  return message.DebugString();
}
template <>
std::string Shown<v1::RestoreResponse>(const std::string& bytes) {
  v1::RestoreResponse message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  if (message.has_progress()) return kProgress;
  ForgetTimes(message);
  return message.DebugString();
}

// Whether a field of the metadata is the transport's. gRPC's client need not show those.
bool IsTransports(const std::string& name) {
  return name == "content-type" || name == "grpc-accept-encoding" || name == "grpc-encoding";
}

struct Case {
  const char* name;
  std::string method;
  std::vector<std::string> requests;
  StatusCode code;
  // Number of messages of the answer, and what shows one.
  size_t answers = 0;
  std::string (*shown)(const std::string& bytes) = nullptr;
  std::multimap<std::string, std::string> metadata = {};
  // A response is read after each request.
  bool in_turn = false;
  // Instead of closing its side, the client cancels the call, or waits for the deadline.
  bool cancels = false;
  bool waits = false;
  // The transport ends the call, in words of its own. If the client cancels or waits, its library knows the
  // end before the server does, so what counts is that the handler is told of it.
  bool in_own_words = false;
};

// What a client sees of a call.
struct Seen {
  std::vector<std::string> answers;
  grpc::Status status;
  std::multimap<std::string, std::string> initial;
  std::multimap<std::string, std::string> trailers;
};

struct CallCounts {
  // Calls whose OnDone() has not come, and those that OnCancel() has come for.
  std::atomic<int> open = 0;
  std::atomic<int> cancelled = 0;
};

// Passes everything on to a service's handler, and counts the calls.
class CountingHandler final : public CallHandler {
 public:
  CountingHandler(std::shared_ptr<CallHandler> handler, std::shared_ptr<CallCounts> counts)
      : handler_(std::move(handler)), counts_(std::move(counts)) {}

  void OnStart(Call* call) override {
    counts_->open.fetch_add(1);
    handler_->OnStart(call);
  }
  void OnMessage(BytePieces message) override { handler_->OnMessage(std::move(message)); }
  void OnHalfClose() override { handler_->OnHalfClose(); }
  void OnSent(bool ok) override { handler_->OnSent(ok); }
  void OnCancel() override {
    counts_->cancelled.fetch_add(1);
    handler_->OnCancel();
  }
  void OnDone() override {
    handler_->OnDone();
    counts_->open.fetch_sub(1);
  }

 private:
  const std::shared_ptr<CallHandler> handler_;
  const std::shared_ptr<CallCounts> counts_;
};

// Fails the test if `condition` does not hold within a minute.
template <typename Condition>
void Await(const Condition& condition) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    ASSERT_LT(absl::Now(), end);
    std::this_thread::yield();
  }
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Without the transport's own fields.
std::multimap<std::string, std::string> MetadataOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& fields) {
  std::multimap<std::string, std::string> metadata;
  for (const auto& [name, value] : fields) {
    std::string text(name.data(), name.size());
    if (!IsTransports(text)) metadata.emplace(std::move(text), std::string(value.data(), value.size()));
  }
  return metadata;
}

// Makes one call of any kind, by messages as they are.
class Client {
 public:
  Client(int port, const Case& call)
      : call_(call),
        channel_(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials())),
        stub_(channel_) {
    // The server has to hear of a call before its deadline.
    if (call.waits) {
      EXPECT_TRUE(channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::minutes(1)));
    }
    // A server that forgets a call fails the test instead of hanging it.
    const auto timeout = call.waits ? std::chrono::milliseconds(2000) : std::chrono::milliseconds(60000);
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    for (const auto& [name, value] : call.metadata) context_.AddMetadata(name, value);
  }

  Seen Run() {
    stream_ = stub_.PrepareCall(&context_, call_.method, &queue_);
    stream_->StartCall(nullptr);
    bool is_open = Ended();
    for (const std::string& request : call_.requests) {
      if (!is_open) break;
      stream_->Write(BufferOf(request), nullptr);
      is_open = Ended();
      if (is_open && call_.in_turn) is_open = Read();
    }
    if (call_.cancels) {
      context_.TryCancel();
    } else if (is_open && !call_.waits) {
      stream_->WritesDone(nullptr);
      Ended();
    }
    while (has_more_) Read();
    stream_->Finish(&seen_.status, nullptr);
    EXPECT_TRUE(Ended());
    seen_.initial = MetadataOf(context_.GetServerInitialMetadata());
    seen_.trailers = MetadataOf(context_.GetServerTrailingMetadata());
    queue_.Shutdown();
    EXPECT_FALSE(Ended()) << "nothing else is to come";
    return std::move(seen_);
  }

 private:
  // Waits for the operation that was begun. Returns whether it succeeded.
  bool Ended() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  bool Read() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    has_more_ = Ended();
    if (!has_more_) return false;
    std::string shown = call_.shown == nullptr ? TextOf(buffer) : call_.shown(TextOf(buffer));
    if (shown != kProgress) seen_.answers.push_back(std::move(shown));
    return true;
  }

  const Case& call_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool has_more_ = true;
  Seen seen_;
};

class GrpcRuntimeTest : public testing::ModelPipelineTest {
 protected:
  void SetUp() override {
    WriteIdentity(/*max_batch_size=*/1);
    LoadModels();
    health_.Set("", true);
    health_.Set("identity", false);
    folder_.Write("frames", std::string(64, 'x'));
    front_ =
        std::make_unique<TestFront>(Methods(inference_service_, front_calls_), kMaxMessage, admission_.get());
    runtime_ = GrpcRuntime::Start(Methods(runtime_inference_service_, runtime_calls_), kMaxMessage);
    ASSERT_NE(runtime_, nullptr);
  }
  void TearDown() override {
    front_ = nullptr;
    runtime_ = nullptr;
    ModelPipelineTest::TearDown();
    EXPECT_EQ(admission_->inflight().requests, 0);
    EXPECT_EQ(admission_->inflight().bytes, 0);
  }

  std::vector<CallMethod> Methods(InferenceService& inference_service,
                                  const std::shared_ptr<CallCounts>& counts) {
    std::vector<CallMethod> methods = health_.Methods();
    for (std::vector<CallMethod> more :
         {inference_service.Methods(), vision_.Methods(),
          ReflectionMethods({"inference.GRPCInferenceService", "saccade.v1.Vision"})})
      std::move(more.begin(), more.end(), std::back_inserter(methods));
    for (CallMethod& method : methods) {
      method.make = [make = method.make, counts] {
        return std::make_shared<CountingHandler>(make(), counts);
      };
    }
    return methods;
  }

  void Compare(const std::vector<Case>& calls) {
    for (const Case& call : calls) {
      SCOPED_TRACE(call.name);
      const int cancelled = front_calls_->cancelled;
      const Seen ours = Client(front_->port(), call).Run();
      const Seen grpcs = Client(runtime_->port(), call).Run();
      // While both servers run, whose ends would end the calls too.
      Await([this] { return front_calls_->open == 0 && runtime_calls_->open == 0; });
      Await([this] { return admission_->inflight().requests == 0 && admission_->inflight().bytes == 0; });
      if (call.cancels || call.waits) {
        EXPECT_EQ(front_calls_->cancelled, cancelled + 1);
      }
      EXPECT_EQ(ours.status.error_code(), call.code) << ours.status.error_message();
      EXPECT_EQ(grpcs.status.error_code(), call.code) << grpcs.status.error_message();
      EXPECT_EQ(ours.answers.size(), call.answers);
      EXPECT_EQ(ours.answers, grpcs.answers);
      if (call.in_own_words) continue;
      EXPECT_EQ(ours.status.error_message(), grpcs.status.error_message());
      EXPECT_EQ(ours.status.error_details(), grpcs.status.error_details());
      EXPECT_EQ(ours.initial, grpcs.initial);
      EXPECT_EQ(ours.trailers, grpcs.trailers);
    }
  }

  InferenceService ServiceOf(Inference* inference, SharedMemory* shared_memory) {
    return InferenceService({.server_name = "saccade",
                             .server_version = "test",
                             .max_message_bytes = kMaxMessage,
                             .retry_jitter = &jitter_,
                             .ready = [] { return true; }},
                            {.inference = inference,
                             .pipeline = &pipeline_,
                             .catalog = &catalog_,
                             .shared_memory = shared_memory,
                             .clock = Clock::Real()});
  }

  Health health_;
  RetryJitter jitter_{1};
  // Holds the files of shared memory.
  TestRepository folder_;
  // Each server has its own regions, so that what is done on one does not show on the other.
  SharedMemory shared_memory_{{.allowed = true, .folder = folder_.string()}};
  SharedMemory runtime_shared_memory_{{.allowed = true, .folder = folder_.string()}};
  Inference inference_{&pipeline_, &catalog_, &shared_memory_, StatusCodes()};
  Inference runtime_inference_{&pipeline_, &catalog_, &runtime_shared_memory_, StatusCodes()};
  InferenceService inference_service_ = ServiceOf(&inference_, &shared_memory_);
  InferenceService runtime_inference_service_ = ServiceOf(&runtime_inference_, &runtime_shared_memory_);
  VisionService vision_{{.max_message_bytes = kMaxMessage,
                         .max_stream_requests = 8,
                         .upload_timeout = absl::Minutes(1),
                         .retry_jitter = &jitter_},
                        &pipeline_,
                        &catalog_,
                        Clock::Real()};
  const std::shared_ptr<CallCounts> front_calls_ = std::make_shared<CallCounts>();
  const std::shared_ptr<CallCounts> runtime_calls_ = std::make_shared<CallCounts>();
  std::unique_ptr<TestFront> front_;
  std::unique_ptr<GrpcRuntime> runtime_;
};

std::string CheckOf(const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  return request.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, Health) {
  const std::string check = "/grpc.health.v1.Health/Check", watch = "/grpc.health.v1.Health/Watch";
  const auto shown = Shown<grpc::health::v1::HealthCheckResponse>;
  Compare({
      {"serving", check, {CheckOf("")}, StatusCode::OK, 1, shown},
      {"not serving", check, {CheckOf("identity")}, StatusCode::OK, 1, shown},
      {"unknown", check, {CheckOf("other")}, StatusCode::NOT_FOUND},
      {"a long name", check, {CheckOf(std::string(2000, 'x'))}, StatusCode::INVALID_ARGUMENT},
      {"malformed", check, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"without a message", check, {}, StatusCode::INVALID_ARGUMENT},
      {"with two messages", check, {CheckOf(""), CheckOf("")}, StatusCode::INVALID_ARGUMENT},
      {"list",
       "/grpc.health.v1.Health/List",
       {""},
       StatusCode::OK,
       1,
       Shown<grpc::health::v1::HealthListResponse>},
      {"a watch of nothing", watch, {}, StatusCode::INVALID_ARGUMENT},
      {.name = "a watch that is cancelled",
       .method = watch,
       .requests = {CheckOf("identity")},
       .code = StatusCode::CANCELLED,
       .answers = 1,
       .shown = shown,
       .in_turn = true,
       .cancels = true,
       .in_own_words = true},
      {.name = "a method that is not there",
       .method = "/grpc.health.v1.Health/Set",
       .requests = {CheckOf("")},
       .code = StatusCode::UNIMPLEMENTED,
       .in_own_words = true},
  });
}

// A request for a volume of four voxels, of which `values` come.
std::string InferOf(const std::string& model, const std::string& id = "", size_t values = 4) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  request.set_id(id);
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype("FP32");
  for (const int64_t extent : {1, 1, 1, 1, 4}) input->add_shape(extent);
  const std::vector<float> voxels(values, 1.5F);
  request.add_raw_input_contents(voxels.data(), voxels.size() * sizeof(float));
  return request.SerializeAsString();
}

// A request that names a model.
template <typename Request>
std::string Named(const std::string& model) {
  Request request;
  request.set_name(model);
  return request.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, WhatTheInferenceServiceTells) {
  using inference::ModelConfigRequest, inference::ModelMetadataRequest, inference::ModelReadyRequest;
  const auto path = [](const char* method) { return InferencePath(method); };
  Compare({
      {"live", path("ServerLive"), {""}, StatusCode::OK, 1, Shown<inference::ServerLiveResponse>},
      {"ready", path("ServerReady"), {""}, StatusCode::OK, 1, Shown<inference::ServerReadyResponse>},
      {"the server",
       path("ServerMetadata"),
       {""},
       StatusCode::OK,
       1,
       Shown<inference::ServerMetadataResponse>},
      {"a ready model",
       path("ModelReady"),
       {Named<ModelReadyRequest>("identity")},
       StatusCode::OK,
       1,
       Shown<inference::ModelReadyResponse>},
      {"an unknown model's readiness",
       path("ModelReady"),
       {Named<ModelReadyRequest>("other")},
       StatusCode::OK,
       1,
       Shown<inference::ModelReadyResponse>},
      {"a model",
       path("ModelMetadata"),
       {Named<ModelMetadataRequest>("identity")},
       StatusCode::OK,
       1,
       Shown<inference::ModelMetadataResponse>},
      {"an unknown model",
       path("ModelMetadata"),
       {Named<ModelMetadataRequest>("other")},
       StatusCode::NOT_FOUND},
      {"a configuration",
       path("ModelConfig"),
       {Named<ModelConfigRequest>("identity")},
       StatusCode::OK,
       1,
       Shown<inference::ModelConfigResponse>},
      {"the repository",
       path("RepositoryIndex"),
       {""},
       StatusCode::OK,
       1,
       Shown<inference::RepositoryIndexResponse>},
      {"malformed", path("ModelConfig"), {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"a long question", path("ServerMetadata"), {std::string(20'000, 'x')}, StatusCode::INVALID_ARGUMENT},
  });
}

TEST_F(GrpcRuntimeTest, Inferences) {
  const std::string infer = InferencePath("ModelInfer"), stream = InferencePath("ModelStreamInfer");
  const auto shown = Shown<inference::ModelInferResponse>;
  const auto shown_in_stream = Shown<inference::ModelStreamInferResponse>;
  const std::string good = InferOf("identity", "an id");
  Compare({
      {"good", infer, {good}, StatusCode::OK, 1, shown},
      {"a tensor that is too short", infer, {InferOf("identity", "", 3)}, StatusCode::INVALID_ARGUMENT},
      {"an unknown model", infer, {InferOf("other")}, StatusCode::NOT_FOUND},
      {"malformed", infer, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"without a message", infer, {}, StatusCode::INVALID_ARGUMENT},
      {"with two messages", infer, {good, good}, StatusCode::INVALID_ARGUMENT},
      {.name = "too large",
       .method = infer,
       .requests = {InferOf("identity", "", kMaxMessage)},
       .code = StatusCode::RESOURCE_EXHAUSTED,
       .in_own_words = true},
      {"a stream with errors in the middle",
       stream,
       {good, InferOf("other", "unknown"), kMalformed, InferOf("identity", "short", 3), good},
       StatusCode::OK,
       5,
       shown_in_stream},
      {"an empty stream", stream, {}, StatusCode::OK},
      {.name = "a stream that an error ends",
       .method = stream,
       .requests = {good, InferOf("other"), good},
       .code = StatusCode::NOT_FOUND,
       .answers = 1,
       .shown = shown_in_stream,
       .metadata = {{"triton_grpc_error", "true"}},
       .in_turn = true},
      {.name = "a stream that is cancelled",
       .method = stream,
       .requests = {good, good},
       .code = StatusCode::CANCELLED,
       .answers = 2,
       .shown = shown_in_stream,
       .in_turn = true,
       .cancels = true,
       .in_own_words = true},
      {.name = "a stream whose deadline passes",
       .method = stream,
       .requests = {},
       .code = StatusCode::DEADLINE_EXCEEDED,
       .waits = true,
       .in_own_words = true},
  });
}

std::string RegionOf(const std::string& name, const std::string& key, uint64_t size) {
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(name);
  request.set_key(key);
  request.set_byte_size(size);
  return request.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, SharedMemoryRegions) {
  using inference::CudaSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusRequest;
  using inference::SystemSharedMemoryUnregisterRequest;
  const std::string status = InferencePath("SystemSharedMemoryStatus");
  const std::string add = InferencePath("SystemSharedMemoryRegister");
  const std::string remove = InferencePath("SystemSharedMemoryUnregister");
  const std::string cuda_status = InferencePath("CudaSharedMemoryStatus");
  const auto shown = Shown<inference::SystemSharedMemoryStatusResponse>;
  const auto added = Shown<inference::SystemSharedMemoryRegisterResponse>;
  const auto removed = Shown<inference::SystemSharedMemoryUnregisterResponse>;
  const std::string one = Named<SystemSharedMemoryStatusRequest>("one");
  Compare({
      {"no regions", status, {""}, StatusCode::OK, 1, shown},
      {"a region that is not there", status, {one}, StatusCode::NOT_FOUND},
      {"a new region", add, {RegionOf("one", "/frames", 64)}, StatusCode::OK, 1, added},
      {"a region that is there", add, {RegionOf("one", "/frames", 32)}, StatusCode::ALREADY_EXISTS},
      {"a region that is too large", add, {RegionOf("two", "/frames", 65)}, StatusCode::INVALID_ARGUMENT},
      {"a region without a size", add, {RegionOf("two", "/frames", 0)}, StatusCode::INVALID_ARGUMENT},
      {"malformed", add, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"one region", status, {one}, StatusCode::OK, 1, shown},
      {"all regions", status, {""}, StatusCode::OK, 1, shown},
      {"a region that goes",
       remove,
       {Named<SystemSharedMemoryUnregisterRequest>("one")},
       StatusCode::OK,
       1,
       removed},
      {"a region that is gone", status, {one}, StatusCode::NOT_FOUND},
      {"all regions go", remove, {""}, StatusCode::OK, 1, removed},
      {"no region of a GPU",
       cuda_status,
       {""},
       StatusCode::OK,
       1,
       Shown<inference::CudaSharedMemoryStatusResponse>},
      {"an unknown region of a GPU",
       cuda_status,
       {Named<CudaSharedMemoryStatusRequest>("one")},
       StatusCode::NOT_FOUND},
      {"a new region of a GPU", InferencePath("CudaSharedMemoryRegister"), {""}, StatusCode::UNIMPLEMENTED},
      {"all regions of GPUs go",
       InferencePath("CudaSharedMemoryUnregister"),
       {""},
       StatusCode::OK,
       1,
       Shown<inference::CudaSharedMemoryUnregisterResponse>},
  });
}

template <typename Request>
std::string OrderFor(const std::string& model, const std::string& parameter = "") {
  Request request;
  request.set_model_name(model);
  if (!parameter.empty()) (*request.mutable_parameters())[parameter].set_bool_param(true);
  return request.SerializeAsString();
}

std::string LogChange(const std::string& setting, bool value) {
  inference::LogSettingsRequest request;
  (*request.mutable_settings())[setting].set_bool_param(value);
  return request.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, Extensions) {
  using inference::ModelStatisticsRequest;
  using inference::RepositoryModelLoadRequest, inference::RepositoryModelUnloadRequest;
  const std::string statistics = InferencePath("ModelStatistics"), log = InferencePath("LogSettings");
  const std::string load = InferencePath("RepositoryModelLoad");
  const std::string unload = InferencePath("RepositoryModelUnload");
  const auto shown = Shown<inference::ModelStatisticsResponse>;
  Compare({
      {"statistics of all models", statistics, {""}, StatusCode::OK, 1, shown},
      {"statistics of a model",
       statistics,
       {Named<ModelStatisticsRequest>("identity")},
       StatusCode::OK,
       1,
       shown},
      {"statistics of an unknown model",
       statistics,
       {Named<ModelStatisticsRequest>("other")},
       StatusCode::NOT_FOUND},
      // The fixture's catalog loads its models itself.
      {"an order to load",
       load,
       {OrderFor<RepositoryModelLoadRequest>("identity")},
       StatusCode::FAILED_PRECONDITION},
      {"an order to load with an unknown parameter",
       load,
       {OrderFor<RepositoryModelLoadRequest>("identity", "other")},
       StatusCode::INVALID_ARGUMENT},
      {"a malformed order to load", load, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"an order to unload",
       unload,
       {OrderFor<RepositoryModelUnloadRequest>("identity")},
       StatusCode::FAILED_PRECONDITION},
      {"an order to unload with an unknown parameter",
       unload,
       {OrderFor<RepositoryModelUnloadRequest>("identity", "other")},
       StatusCode::INVALID_ARGUMENT},
      {"settings of traces", InferencePath("TraceSetting"), {""}, StatusCode::UNAVAILABLE},
      {"settings of the log", log, {""}, StatusCode::OK, 1, Shown<inference::LogSettingsResponse>},
      {"an unknown setting of the log", log, {LogChange("other", true)}, StatusCode::INVALID_ARGUMENT},
      {"a setting of the log of another type",
       log,
       {LogChange("log_verbose_level", true)},
       StatusCode::INVALID_ARGUMENT},
  });
}

template <typename Request>
std::string SymbolOf(const std::string& name) {
  Request request;
  request.set_host("a host");
  request.set_file_containing_symbol(name);
  return request.SerializeAsString();
}

template <typename Request>
std::string ListOfServices() {
  Request request;
  request.set_list_services("*");
  return request.SerializeAsString();
}

template <typename Request, typename Response>
std::vector<Case> ReflectionCases(const std::string& package) {
  const std::string path = "/" + package + ".ServerReflection/ServerReflectionInfo";
  const auto shown = Shown<Response>;
  return {
      {"the services", path, {ListOfServices<Request>()}, StatusCode::OK, 1, shown},
      // A file that the stream has carried is not sent again.
      {"symbols",
       path,
       {SymbolOf<Request>("saccade.v1.Vision"), SymbolOf<Request>("saccade.v1.Vision.Predict"),
        SymbolOf<Request>("saccade.v1.Other"), Request().SerializeAsString()},
       StatusCode::OK,
       4,
       shown},
      {"no request", path, {}, StatusCode::OK},
      {"malformed", path, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {.name = "a stream that is cancelled",
       .method = path,
       .requests = {ListOfServices<Request>()},
       .code = StatusCode::CANCELLED,
       .answers = 1,
       .shown = shown,
       .in_turn = true,
       .cancels = true,
       .in_own_words = true},
  };
}

TEST_F(GrpcRuntimeTest, Reflection) {
  using grpc::reflection::v1::ServerReflectionRequest, grpc::reflection::v1::ServerReflectionResponse;
  Compare(ReflectionCases<ServerReflectionRequest, ServerReflectionResponse>("grpc.reflection.v1"));
  Compare(ReflectionCases<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>("grpc.reflection.v1alpha"));
}

std::string GetModelOf(const std::string& model) {
  v1::GetModelRequest request;
  request.set_model(model);
  return request.SerializeAsString();
}

void SetShape(v1::VolumeShape* shape) {
  shape->set_depth(1);
  shape->set_height(1);
  shape->set_width(4);
  shape->set_type(v1::VolumeShape::FLOAT32);
}

std::string Voxels(size_t values) {
  const std::vector<float> voxels(values, 1.5F);
  return {reinterpret_cast<const char*>(voxels.data()), voxels.size() * sizeof(float)};
}

v1::PredictRequest Prediction(const std::string& model, size_t values = 4) {
  v1::PredictRequest request;
  request.set_model(model);
  request.set_request_id("an id");
  SetShape(request.mutable_volume()->mutable_raw()->mutable_shape());
  request.mutable_volume()->mutable_raw()->set_voxels(Voxels(values));
  return request;
}

std::string InStream(v1::PredictRequest request) {
  v1::PredictStreamRequest message;
  *message.mutable_request() = std::move(request);
  return message.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, Predictions) {
  const std::string predict = "/saccade.v1.Vision/Predict", stream = "/saccade.v1.Vision/PredictStream";
  const auto shown = Shown<v1::PredictResponse>;
  const auto shown_in_stream = Shown<v1::PredictStreamResponse>;
  const std::string good = Prediction("identity").SerializeAsString();
  v1::PredictRequest without_input;
  without_input.set_model("identity");
  Compare({
      {"the models", "/saccade.v1.Vision/ListModels", {""}, StatusCode::OK, 1, Shown<v1::ListModelsResponse>},
      {"a model",
       "/saccade.v1.Vision/GetModel",
       {GetModelOf("identity")},
       StatusCode::OK,
       1,
       Shown<v1::Model>},
      {"no such model", "/saccade.v1.Vision/GetModel", {GetModelOf("other")}, StatusCode::NOT_FOUND},
      {"good", predict, {good}, StatusCode::OK, 1, shown},
      {"a volume that is too short",
       predict,
       {Prediction("identity", 3).SerializeAsString()},
       StatusCode::INVALID_ARGUMENT},
      {"without an input", predict, {without_input.SerializeAsString()}, StatusCode::INVALID_ARGUMENT},
      {"an unknown model", predict, {Prediction("other").SerializeAsString()}, StatusCode::NOT_FOUND},
      {"malformed", predict, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {"without a message", predict, {}, StatusCode::INVALID_ARGUMENT},
      {.name = "too large",
       .method = predict,
       .requests = {Prediction("identity", kMaxMessage).SerializeAsString()},
       .code = StatusCode::RESOURCE_EXHAUSTED,
       .in_own_words = true},
      {"a stream with errors in the middle",
       stream,
       {InStream(Prediction("identity")), InStream(Prediction("other")), kMalformed,
        InStream(Prediction("identity", 3)), InStream(Prediction("identity"))},
       StatusCode::OK,
       5,
       shown_in_stream},
      {.name = "a stream that is cancelled",
       .method = stream,
       .requests = {InStream(Prediction("identity"))},
       .code = StatusCode::CANCELLED,
       .answers = 1,
       .shown = shown_in_stream,
       .in_turn = true,
       .cancels = true,
       .in_own_words = true},
  });
}

std::string HeaderOf(const std::string& model, size_t values = 4) {
  v1::RestoreRequest request;
  v1::RestoreHeader* header = request.mutable_header();
  header->set_model(model);
  header->set_bytes(static_cast<int64_t>(values * sizeof(float)));
  SetShape(header->mutable_raw());
  return request.SerializeAsString();
}

std::string PartOf(size_t values) {
  v1::RestoreRequest request;
  request.set_data(Voxels(values));
  return request.SerializeAsString();
}

TEST_F(GrpcRuntimeTest, Restorations) {
  const std::string restore = "/saccade.v1.Vision/Restore";
  const auto shown = Shown<v1::RestoreResponse>;
  Compare({
      // The response and its voxels.
      {"good", restore, {HeaderOf("identity"), PartOf(3), PartOf(1)}, StatusCode::OK, 2, shown},
      {"too few voxels", restore, {HeaderOf("identity"), PartOf(3)}, StatusCode::INVALID_ARGUMENT},
      {"too many voxels", restore, {HeaderOf("identity"), PartOf(5)}, StatusCode::INVALID_ARGUMENT},
      {"a size that is not the shape's",
       restore,
       {HeaderOf("identity", 3), PartOf(3)},
       StatusCode::INVALID_ARGUMENT},
      {"an unknown model", restore, {HeaderOf("other"), PartOf(4)}, StatusCode::NOT_FOUND},
      {"without a header", restore, {PartOf(4)}, StatusCode::INVALID_ARGUMENT},
      {"without a message", restore, {}, StatusCode::INVALID_ARGUMENT},
      {"malformed", restore, {kMalformed}, StatusCode::INVALID_ARGUMENT},
      {.name = "a volume that does not come in time",
       .method = restore,
       .requests = {HeaderOf("identity"), PartOf(3)},
       .code = StatusCode::DEADLINE_EXCEEDED,
       .waits = true,
       .in_own_words = true},
  });
}

}  // namespace
}  // namespace saccade::server
