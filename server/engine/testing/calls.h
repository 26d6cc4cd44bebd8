// Helpers for tests: calls like the pipeline's, answered without a network.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/core/fake_clock.h"
#include "server/decode/decode_pool.h"
#include "server/engine/call_share.h"
#include "server/engine/testing/fake_model.h"

namespace saccade::server {

// How a call was answered.
struct Outcome {
  std::atomic<int> answers{0};
  std::optional<absl::StatusOr<Response>> last;
  // Called with each answer; may be null.
  std::function<void()> when_answered;

  absl::Status status() const { return last.value().status(); }
};

class CallTest : public ::testing::Test {
 protected:
  // A call with one item for each of `sides`, each side being a bucket of its own.
  std::shared_ptr<PredictCall> Call(const std::vector<int64_t>& sides,
                                    const std::shared_ptr<Outcome>& outcome,
                                    std::shared_ptr<Cancellation> cancellation = nullptr,
                                    std::function<absl::Status(Response&)> encode = nullptr) {
    Request request;
    request.encode = std::move(encode);
    request.encodes_maps = true;
    request.arrival = clock_.Now();
    request.deadline = clock_.Now() + absl::Seconds(1);
    request.cancellation = std::move(cancellation);
    request.protocol = "grpc";
    request.input = std::vector<Picture>(sides.size());
    const auto done = [outcome](absl::StatusOr<Response> answer) {
      outcome->last = std::move(answer);
      ++outcome->answers;
      if (outcome->when_answered) outcome->when_answered();
    };
    auto call = std::make_shared<PredictCall>(
        std::move(request), done,
        PredictCall::Deps{
            .model = model_, .metrics = &metrics_, .clock = &clock_, .encode_pool = encode_pool_.get()});
    for (const int64_t side : sides) {
      call->AddItem({.placement = {.sent = {1, 1}, .scaled = {1, 1}, .bucket = {side, side}},
                     .pixels = {},
                     .owned = std::make_unique<float[]>(1)});
    }
    call->MarkPrepared();
    return call;
  }

  // Answers like a network that returns the side of its bucket for every item.
  static void Answer(CallShare& share, const ForwardPass& pass) {
    std::vector<models::TaskResult> results;
    for (int64_t i = 0; i < share.size(); ++i) {
      const auto side = static_cast<float>(share.item(i).placement.bucket.height);
      results.emplace_back(models::Classification{.logits = {side}});
    }
    share.Answer(std::move(results), pass);
  }

  static std::vector<float> Logits(const Response& response) {
    std::vector<float> logits;
    for (const auto& result : response.results)
      logits.push_back(std::get<models::Classification>(result).logits.at(0));
    return logits;
  }

  ForwardPass Pass(int64_t batch_size, int started, int ended) {
    return {batch_size, clock_.Now() + absl::Milliseconds(started), clock_.Now() + absl::Milliseconds(ended)};
  }

  FakeClock clock_;
  models::Description description_;
  Metrics metrics_{"test"};
  std::unique_ptr<ModelMetrics> model_metrics_ = metrics_.ForModel("m", 3, "classification");
  const std::shared_ptr<FakeModel> model_ =
      std::make_shared<FakeModel>(3, &description_, model_metrics_.get());
  const std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
  // Null unless a test sets it.
  std::unique_ptr<DecodePool> encode_pool_;
};

}  // namespace saccade::server
