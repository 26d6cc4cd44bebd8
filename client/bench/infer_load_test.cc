#include "client/bench/infer_load.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/synchronization/mutex.h"
#include "client/bench/echo_server.h"
#include "inference/grpc_service.grpc.pb.h"

namespace saccade::client {
namespace {

std::string SmallRequest() {
  return InferRequest({.model = "identity", .shape = {1, 1, 1, 1, 2}, .bytes = std::string(8, '\0')});
}

// Serves calls one after the other, 20 ms each; calls beyond that rate have to wait.
class Slow final : public inference::GRPCInferenceService::Service {
 public:
  grpc::Status ModelInfer(grpc::ServerContext*, const inference::ModelInferRequest*,
                          inference::ModelInferResponse*) override {
    absl::MutexLock lock(&mutex_);
    absl::SleepFor(absl::Milliseconds(20));
    return grpc::Status::OK;
  }

 private:
  absl::Mutex mutex_;
};

TEST(InferLoad, AClosedLoopAsksAgainWhenItIsAnswered) {
  const EchoServer server;
  InferLoad load(server.url(), SmallRequest(), 3);
  ASSERT_TRUE(load.Connect().ok());
  const InferLoadResult result = load.Closed(absl::Milliseconds(100));
  EXPECT_EQ(result.failed, 0);
  EXPECT_GT(result.latencies.size(), 10U);
  EXPECT_GE(result.elapsed, absl::Milliseconds(100));
  // Three calls run at a time, and each client has only one of them.
  absl::Duration sum;
  for (const absl::Duration latency : result.latencies) sum += latency;
  EXPECT_LE(sum, 3 * result.elapsed);
}

TEST(InferLoad, AnOpenLoopCountsTheTimeThatCallsWereKeptWaiting) {
  Slow service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  InferLoad load("127.0.0.1:" + std::to_string(port), SmallRequest(), 2);
  ASSERT_TRUE(load.Connect().ok());
  // Twice the server's capacity for half a second: the last calls wait for about as long.
  const InferLoadResult result = load.Open({.duration = absl::Milliseconds(500), .rate = 100});
  ASSERT_GT(result.latencies.size(), 25U);
  EXPECT_GT(*std::max_element(result.latencies.begin(), result.latencies.end()), absl::Milliseconds(200));
  server->Shutdown();
}

TEST(InferLoad, ToldThatNobodyIsThere) {
  InferLoad load("127.0.0.1:1", SmallRequest(), 1);
  EXPECT_EQ(load.Connect().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::client
