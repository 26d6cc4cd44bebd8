// gRPC's own client against our server, and against gRPC's: both must look the same to it. The cases are
// those of gRPC's interoperability tests.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "echo.grpc.pb.h"
#include "server/grpc/testing/echo_service.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/grpc/testing/grpc_runtime.h"
#include "server/grpc/testing/test_front.h"

namespace saccade::server {
namespace {

using ::saccade::testing::Echo;
using ::saccade::testing::EchoRequest;
using ::saccade::testing::EchoResponse;
using ::saccade::testing::MissingService;
using ::testing::Contains;
using ::testing::Pair;

constexpr int kMaxMessage = 32 << 20;

class GrpcClientTest : public ::testing::TestWithParam<std::string> {
 protected:
  GrpcClientTest() {
    if (GetParam() == "Front") {
      front_ = std::make_unique<TestFront>(EchoMethods(), kMaxMessage, &ledger_);
    } else {
      runtime_ = GrpcRuntime::Start(EchoMethods(), kMaxMessage);
    }
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ =
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", front_ ? front_->port() : runtime_->port()),
                                  grpc::InsecureChannelCredentials(), arguments);
    stub_ = Echo::NewStub(channel_);
  }

  ~GrpcClientTest() override {
    stub_ = nullptr;
    channel_ = nullptr;
    front_ = nullptr;
    EXPECT_EQ(ledger_.charged(), 0);
  }

  // A server that forgets a call fails the test instead of hanging it.
  static void Bound(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  }

  static EchoRequest Request(std::string payload, int responses = 1) {
    EchoRequest request;
    request.set_payload(std::move(payload));
    request.set_responses(responses);
    return request;
  }
  static EchoRequest Failure(int code, const std::string& message) {
    EchoRequest request;
    request.set_code(code);
    request.set_message(message);
    return request;
  }

  grpc::Status CallUnary(const EchoRequest& request, EchoResponse* response) {
    grpc::ClientContext context;
    Bound(context);
    return stub_->Unary(&context, request, response);
  }

  FakeLedger ledger_;
  std::unique_ptr<TestFront> front_;
  std::unique_ptr<GrpcRuntime> runtime_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Echo::Stub> stub_;
};

INSTANTIATE_TEST_SUITE_P(Servers, GrpcClientTest, ::testing::Values("Front", "GrpcRuntime"),
                         [](const auto& server) { return server.param; });

TEST_P(GrpcClientTest, EmptyUnary) {
  EchoResponse response;
  const grpc::Status status = CallUnary({}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.ByteSizeLong(), 0u);
}

TEST_P(GrpcClientTest, UnaryOfManySizes) {
  for (const size_t size : {1, 1000, 65000, 65520, 65535, 65536, 271828, 5000000, 30000000}) {
    EchoResponse response;
    const grpc::Status status = CallUnary(Request(std::string(size, 'x')), &response);
    ASSERT_TRUE(status.ok()) << size << ": " << status.error_message();
    ASSERT_EQ(response.payload().size(), size);
  }
}

TEST_P(GrpcClientTest, ManyUnaryCallsAtOnce) {
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([this, client] {
      for (int i = 0; i < 100; ++i) {
        const std::string payload = absl::StrCat(client, " ", i, std::string(i * 997 % 100000, 'x'));
        EchoResponse response;
        const grpc::Status status = CallUnary(Request(payload), &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        ASSERT_EQ(response.payload(), payload);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_P(GrpcClientTest, CompressedRequests) {
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    Bound(context);
    context.set_compression_algorithm(algorithm);
    EchoResponse response;
    const EchoRequest request = Request(std::string(3000000, 'x'));
    const grpc::Status status = stub_->Unary(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.payload(), request.payload());
  }
}

TEST_P(GrpcClientTest, ClientStreaming) {
  grpc::ClientContext context;
  Bound(context);
  EchoResponse response;
  const auto stream = stub_->Collect(&context, &response);
  int64_t total = 0;
  for (const size_t size : {27182, 8, 1828, 45904, 0, 1000000}) {
    ASSERT_TRUE(stream->Write(Request(std::string(size, 'x'))));
    total += static_cast<int64_t>(size);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.number(), total);
}

TEST_P(GrpcClientTest, ServerStreaming) {
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Expand(&context, Request(std::string(50000, 'x'), 100));
  EchoResponse response;
  int count = 0;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.number(), count++);
    EXPECT_EQ(response.payload().size(), 50000u);
  }
  EXPECT_EQ(count, 100);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_P(GrpcClientTest, PingPong) {
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Chat(&context);
  for (const size_t size : {27182, 8, 1828, 45904, 0, 1000000}) {
    ASSERT_TRUE(stream->Write(Request(std::string(size, 'x'))));
    EchoResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.payload().size(), size);
  }
  stream->WritesDone();
  EchoResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_P(GrpcClientTest, ManyMessagesAhead) {
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Chat(&context);
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) stream->Write(Request(std::string(300, 'x')));
    stream->WritesDone();
  });
  EchoResponse response;
  int count = 0;
  while (stream->Read(&response)) ++count;
  writer.join();
  EXPECT_EQ(count, 2000);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_P(GrpcClientTest, EmptyStream) {
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Chat(&context);
  stream->WritesDone();
  EchoResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_P(GrpcClientTest, CancelAfterBegin) {
  grpc::ClientContext context;
  Bound(context);
  EchoResponse response;
  const auto stream = stub_->Collect(&context, &response);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_P(GrpcClientTest, CancelAfterFirstResponse) {
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Chat(&context);
  stream->Write(Request("x"));
  EchoResponse response;
  ASSERT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_P(GrpcClientTest, TimeoutOnASleepingServer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  const auto stream = stub_->Sleep(&context);
  stream->Write(Request("x"));
  EchoResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_P(GrpcClientTest, StatusCodeAndMessage) {
  for (int code = 1; code <= 16; ++code) {
    EchoResponse response;
    const grpc::Status status = CallUnary(Failure(code, "test status message"), &response);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(status.error_message(), "test status message");
    EXPECT_EQ(status.error_details(), "");
  }
  grpc::ClientContext context;
  Bound(context);
  const auto stream = stub_->Chat(&context);
  EchoRequest request = Failure(2, "test status message");
  request.set_responses(1);
  stream->Write(request);
  stream->WritesDone();
  EchoResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "test status message");
}

TEST_P(GrpcClientTest, SpecialStatusMessageAndDetails) {
  const std::string special =
      "\t\ntest with whitespace\r\nand Unicode BMP \xE2\x98\xBA and non-BMP \xF0\x9F\x98\x88, 100 %41\t\n";
  EchoRequest request = Failure(9, special);
  std::string details;
  for (int c = 0; c < 256; ++c) details.push_back(static_cast<char>(c));
  request.set_details(details);
  EchoResponse response;
  const grpc::Status status = CallUnary(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), special);
  EXPECT_EQ(status.error_details(), details);
}

TEST_P(GrpcClientTest, CustomMetadata) {
  const std::string binary("\x00\xAB\xFF,\x01", 5);
  for (const bool fails : {false, true}) {
    grpc::ClientContext context;
    Bound(context);
    context.AddMetadata("x-echo-text", "some text, with a comma");
    context.AddMetadata("x-echo-raw-bin", binary);
    const auto stream = stub_->Chat(&context);
    EchoRequest request = Failure(fails ? 5 : 0, fails ? "no" : "");
    request.set_responses(fails ? 0 : 1);
    stream->Write(request);
    stream->WritesDone();
    EchoResponse response;
    while (stream->Read(&response)) {
    }
    EXPECT_EQ(stream->Finish().ok(), !fails);
    const auto& trailers = context.GetServerTrailingMetadata();
    EXPECT_THAT(trailers, Contains(Pair("x-echo-text", "some text, with a comma")));
    EXPECT_THAT(trailers, Contains(Pair("x-echo-raw-bin", grpc::string_ref(binary))));
  }
}

TEST_P(GrpcClientTest, UnimplementedMethodAndService) {
  EchoResponse response;
  grpc::ClientContext method;
  Bound(method);
  EXPECT_EQ(stub_->Missing(&method, {}, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  grpc::ClientContext service;
  Bound(service);
  EXPECT_EQ(MissingService::NewStub(channel_)->Unary(&service, {}, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_P(GrpcClientTest, MessagesAboveTheBound) {
  EchoResponse response;
  const grpc::Status status = CallUnary(Request(std::string(kMaxMessage + 1, 'x')), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  // The connection still serves others.
  EXPECT_TRUE(CallUnary(Request("x"), &response).ok());
}

}  // namespace
}  // namespace saccade::server
