#include "server/simulation/simulation.h"

#include <gtest/gtest.h>

#include "server/simulation/eager_policy.h"
#include "server/simulation/serving_policy.h"
#include "server/simulation/triton_policy.h"

namespace saccade::server::simulation {
namespace {

const std::vector<ModelOptions> kModels = {
    ModelOptions{.instances = 2, .latency = {.beta = kMillisecond}, .shapes = EqualAreas(2)}};

Simulation::Options Mixed(uint64_t seed) {
  return {.streams = {{.rate = 500, .cv = 2, .buckets = {1, 1}, .clients = 3, .cancelled = 0.05}},
          .until = 4 * kSecond,
          .seed = seed,
          .ledger = {.from = kSecond, .to = 4 * kSecond, .slot = kSecond}};
}

uint64_t TraceOf(uint64_t seed) {
  SimDevices device(kModels, 0.1, seed);
  Simulation simulation(Mixed(seed), &device, std::make_unique<EagerPolicy>(8, kModels));
  simulation.Run();
  return simulation.trace_hash();
}

TEST(SimulationTest, ASeedIsARun) {
  EXPECT_EQ(TraceOf(1), TraceOf(1));
  EXPECT_NE(TraceOf(1), TraceOf(2));
}

TEST(SimulationTest, EveryRequestIsCountedOnce) {
  SimDevices device(kModels, 0.1, 1);
  Simulation simulation(Mixed(1), &device, std::make_unique<EagerPolicy>(8, kModels));
  simulation.Run();
  EXPECT_EQ(simulation.mistakes().total(), 0);
  const Ledger& ledger = simulation.ledger();
  // Three of the four seconds are counted.
  EXPECT_NEAR(static_cast<double>(ledger.all().total()), 1500, 300);
  EXPECT_LT(ledger.all().total(), simulation.requests());
  EXPECT_GT(ledger.all()[Outcome::kCancelled], 0);
  EXPECT_GT(ledger.all().Share(Outcome::kInTime), 0.9);
  int64_t by_client = 0;
  for (const Tally& tally : ledger.by_client()) by_client += tally.total();
  EXPECT_EQ(by_client, ledger.all().total());
  EXPECT_EQ(ledger.by_slot().size(), 3u);
  EXPECT_GT(ledger.fairness(), 0.98);
  EXPECT_GE(ledger.latency().Percentile(0.01), FromMilliseconds(6 * 0.7));
}

TEST(SimulationTest, AnInstanceComputesOneBatchAfterTheOther) {
  // Ten requests at once, in batches of up to four.
  const std::vector<ModelOptions> models = {ModelOptions{.latency = {.beta = kMillisecond}}};
  SimDevices device(models, 0, 1);
  Simulation simulation({.streams = {{.rate = 1e9, .cv = 0}},
                         .until = Nanos(10),
                         .seed = 1,
                         .ledger = {.from = {}, .to = kSecond, .slot = {}}},
                        &device, std::make_unique<TritonPolicy>(TritonOptions{.max_batch_size = 4}, models));
  simulation.Run();
  EXPECT_EQ(simulation.requests(), 10);
  // The first request forms a batch of its own.
  EXPECT_EQ(simulation.batches(), 4);
  EXPECT_NEAR(ToMilliseconds(simulation.ledger().latency().Percentile(1)), 6 + 9 + 9 + 6, 0.1);
  EXPECT_NEAR(ToMilliseconds(simulation.busy(0)), 30, 0.001);
}

TEST(SimulationTest, PaddedBatchesCostWhatTheyAre) {
  SimDevices device(kModels, 0, 1);
  Simulation simulation(
      {.streams = {{.rate = 1e9, .cv = 0, .buckets = {1, 0}}, {.rate = 1e9, .cv = 0, .buckets = {0, 1}}},
       .until = Nanos(1),
       .seed = 1,
       .ledger = {.from = {}, .to = kSecond, .slot = {}}},
      &device,
      std::make_unique<ServingPolicy>(ServingOptions{.max_batch_size = 2, .batch_timeout = absl::Seconds(1)},
                                      kModels));
  simulation.Run();
  EXPECT_EQ(simulation.batches(), 1);
  EXPECT_NEAR(ToMilliseconds(simulation.busy(0)), 5 + 2 * 2, 0.001);
}

// A policy that drops every other task which it has accepted.
class Forgetful final : public Policy {
 public:
  absl::Status Push(int, std::unique_ptr<BatchTask>& task, absl::Time) override {
    if (++pushed_ % 2 == 0) {
      task.reset();
    } else {
      kept_.push_back(std::move(task));
    }
    return absl::OkStatus();
  }
  std::optional<Batch> Next(absl::Time) override { return std::nullopt; }
  void Finished(int, int, absl::Time, bool) override {}
  absl::Time wake_at() const override { return absl::InfiniteFuture(); }

 private:
  int pushed_ = 0;
  std::vector<std::unique_ptr<BatchTask>> kept_;
};

TEST(SimulationTest, WhatIsForgottenIsFound) {
  SimDevices device(kModels, 0, 1);
  Simulation simulation({.streams = {{.rate = 1000, .cv = 0}}, .until = 10 * kMillisecond, .seed = 1},
                        &device, std::make_unique<Forgetful>());
  simulation.Run();
  EXPECT_EQ(simulation.mistakes().lost, 5);
  EXPECT_EQ(simulation.mistakes().stuck, 5);
}

}  // namespace
}  // namespace saccade::server::simulation
