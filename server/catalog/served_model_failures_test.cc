// Passes that fail, and GPUs that are lost.
#include "server/catalog/served_model.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/served_model_fixture.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// Fails every pass, as an engine on a broken GPU does.
class BrokenEngine final : public AnsweringEngine {
 public:
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  PassEnd Compute(Shares batch, Clock* /*clock*/, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    PassEnd end;
    for (auto& share : batch) end.failed.push_back({std::move(share), absl::InternalError("broken")});
    return end;
  }

 private:
  void Pass() const override {}
};

// Its first pass finds the device lost.
class LosingEngine final : public AnsweringEngine {
 public:
  explicit LosingEngine(std::atomic<int>* passes) : passes_(passes) {}
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  PassEnd Compute(Shares batch, Clock* /*clock*/, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    ++*passes_;
    PassEnd end = {.device_lost = true};
    for (auto& share : batch) end.failed.push_back({std::move(share), absl::UnavailableError("lost")});
    return end;
  }

 private:
  void Pass() const override {}

  std::atomic<int>* const passes_;
};

class WorkingEngine final : public AnsweringEngine {
 public:
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }

 private:
  void Pass() const override {}
};

TEST_F(ServedModelTest, OneBrokenGpuCostsNoAnswerAndIsSetAside) {
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [](const ModelSettings&,
                           const EngineOptions& wanted) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (wanted.gpu == 0) return std::make_unique<BrokenEngine>();
    return std::make_unique<WorkingEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 60; ++i) {
    const auto outcome = outcomes.emplace_back(std::make_shared<Outcome>());
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
  }
  model.RefreshGauges();
  const std::string exposition = metrics_.Exposition();
  model.Close();
  for (const auto& outcome : outcomes) {
    ASSERT_EQ(outcome->answers, 1);
    EXPECT_TRUE(outcome->status().ok()) << outcome->status();
  }
  EXPECT_THAT(exposition, HasSubstr("saccade_model_instances_set_aside{model=\"m\",version=\"3\"} 1"));
  // The third failure is noticed when its retry has ended. The next request may have been handed out by then.
  EXPECT_THAT(exposition,
              ::testing::ContainsRegex("saccade_batches_retried_total.model=\"m\",version=\"3\". [34]"));
}

TEST_F(ServedModelTest, ALostGpuIsNeverAskedAgainAndItsRequestsAreComputedElsewhere) {
  std::atomic<int> passes = 0;
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [&](const ModelSettings&,
                            const EngineOptions& wanted) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (wanted.gpu == 0) return std::make_unique<LosingEngine>(&passes);
    return std::make_unique<WorkingEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_FALSE(model.device_lost());
  model.RefreshGauges();
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_model_instances_lost{model=\"m\",version=\"3\"} 0"));
  for (int i = 0; i < 20; ++i) {
    const auto outcome = std::make_shared<Outcome>();
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
    EXPECT_TRUE(outcome->status().ok()) << outcome->status();
  }
  EXPECT_TRUE(model.device_lost());
  model.RefreshGauges();
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_model_instances_lost{model=\"m\",version=\"3\"} 1"));
  model.Close();
  EXPECT_EQ(passes, 1);
}

TEST_F(ServedModelTest, RequestsAreRejectedOnceAllGpusAreLost) {
  std::atomic<int> passes = 0;
  ServedModelOptions options = Options({0});
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<LosingEngine>(&passes);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  for (int i = 0; i < 5; ++i) {
    const auto outcome = std::make_shared<Outcome>();
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
    EXPECT_EQ(outcome->status().code(), absl::StatusCode::kUnavailable) << outcome->status();
  }
  model.Close();
  EXPECT_EQ(passes, 1) << "a pass on a lost GPU may hang";
}

TEST_F(ServedModelTest, WhatFailsOnEveryInstanceIsAnsweredWithTheFailure) {
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [](const ModelSettings&,
                           const EngineOptions&) -> absl::StatusOr<std::unique_ptr<Engine>> {
    return std::make_unique<BrokenEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  absl::Notification answered;
  outcome_->when_answered = [&] { answered.Notify(); };
  auto share = std::move(ShareOut(Call({32}, outcome_))[0]);
  ASSERT_TRUE(model.Submit(share).ok());
  answered.WaitForNotification();
  model.Close();
  EXPECT_EQ(outcome_->status(), absl::InternalError("broken"));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("reason=\"BACKEND\",version=\"3\"} 1"));
}

}  // namespace
}  // namespace saccade::server
