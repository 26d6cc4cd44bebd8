#include "client/bench/infer_load.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/bench/echo_server.h"
#include "inference/grpc_service.grpc.pb.h"

namespace saccade::client {
namespace {

std::string SmallRequest() {
  return InferRequest({.model = "identity", .shape = {1, 1, 1, 1, 2}, .bytes = std::string(8, '\0')});
}

// Answers the first `at_once` calls at once, and the others when `gathered` of them have come.
class Gathering final : public inference::GRPCInferenceService::CallbackService {
 public:
  Gathering(size_t at_once, size_t gathered) : at_once_(at_once), all_(at_once + gathered) {}

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest*,
                                       inference::ModelInferResponse*) override {
    grpc::ServerUnaryReactor* const call = context->DefaultReactor();
    const absl::MutexLock lock(&mutex_);
    calls_.push_back(call);
    if (calls_.size() > at_once_ && calls_.size() < all_) return call;
    for (; answered_ < calls_.size(); ++answered_) calls_[answered_]->Finish(grpc::Status::OK);
    return call;
  }

 private:
  const size_t at_once_;
  const size_t all_;
  absl::Mutex mutex_;
  std::vector<grpc::ServerUnaryReactor*> calls_ ABSL_GUARDED_BY(mutex_);
  size_t answered_ ABSL_GUARDED_BY(mutex_) = 0;
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
  constexpr int kClients = 2;  // each makes one call when it connects
  Gathering service(kClients, 25);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  InferLoad load("127.0.0.1:" + std::to_string(port), SmallRequest(), kClients);
  ASSERT_TRUE(load.Connect().ok());
  // The first call is due a quarter of a second before the 25th, and answered after it.
  const InferLoadResult result = load.Open({.duration = absl::Milliseconds(500), .rate = 100});
  ASSERT_GT(result.latencies.size(), 25U);
  EXPECT_GT(*std::max_element(result.latencies.begin(), result.latencies.end()), absl::Milliseconds(100));
  server->Shutdown();
}

TEST(InferLoad, ToldThatNobodyIsThere) {
  InferLoad load("127.0.0.1:1", SmallRequest(), 1);
  EXPECT_EQ(load.Connect().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::client
