#include "client/load/infer_calls.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

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

TEST(InferCalls, AClosedLoopSendsTheNextWhenOneWasAnswered) {
  const EchoServer server;
  InferCalls calls(server.url(), SmallRequest(), 3);
  ASSERT_TRUE(WarmUp(3, calls.starter()).ok());
  // Long enough for some calls on a busy machine.
  const LoadResult result = RunLoad({.duration = absl::Seconds(1), .connections = 3}, calls.starter());
  EXPECT_TRUE(result.FirstFailure().ok()) << result.FirstFailure();
  EXPECT_GT(result.samples.size(), 10U);
  EXPECT_GE(result.elapsed, absl::Seconds(1));
  // Three calls run at a time, and each client has only one of them.
  absl::Duration sum;
  for (const LoadSample& sample : result.samples) sum += sample.latency();
  EXPECT_LE(sum, 3 * result.elapsed);
}

TEST(InferCalls, AnOpenLoopMeasuresFromWhenACallWasDue) {
  constexpr int kClients = 2;  // each makes one call when it connects
  Gathering service(kClients, 25);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  InferCalls calls("127.0.0.1:" + std::to_string(port), SmallRequest(), kClients);
  ASSERT_TRUE(WarmUp(kClients, calls.starter()).ok());
  // The first call is due a quarter of a second before the 25th, and answered after it.
  const LoadResult result =
      RunLoad({.rate = 100, .duration = absl::Milliseconds(500), .connections = kClients}, calls.starter());
  ASSERT_GT(result.samples.size(), 25U);
  EXPECT_GT(result.samples.front().latency(), absl::Milliseconds(100));
  server->Shutdown();
}

TEST(InferCalls, WarmUpReturnsTheErrorOfAFailedConnection) {
  InferCalls calls("127.0.0.1:1", SmallRequest(), 1);
  EXPECT_EQ(WarmUp(1, calls.starter()).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::client
