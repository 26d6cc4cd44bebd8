// What one broken instance of four costs, over minutes of virtual time.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/simulation/faults/faulty_devices.h"
#include "server/simulation/scheduler_policy.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

constexpr int kInstances = 4;
constexpr int kBroken = 2;
constexpr Nanos kSpan = 60 * kSecond;

class PassCounter final : public Observer {
 public:
  void OnStart(const Policy::Batch& batch, Nanos /*now*/) override { ++passes_[batch.instance]; }
  int64_t passes(int instance) const { return passes_[instance]; }
  int64_t all() const {
    int64_t sum = 0;
    for (const int64_t passes : passes_) sum += passes;
    return sum;
  }

 private:
  std::vector<int64_t> passes_ = std::vector<int64_t>(kInstances);
};

struct Result {
  Tally tally;
  int64_t all_passes = 0;
  int64_t broken_passes = 0;
};

// Four instances on devices of their own, each of which computes 8 pictures in 7 ms. `load` is relative to
// what four can do.
Result Play(double load, bool broken, bool learns_of_failures = true) {
  ModelOptions model;
  model.instances = kInstances;
  model.devices = {0, 1, 2, 3};
  const double capacity = kInstances * 8 * 1e9 / model.latency(8).count();
  DeviceFaults faults;
  faults.heals_at = kSpan;
  if (broken) faults.broken = {{.model = 0, .instance = kBroken, .from = {}, .to = kSpan}};
  FaultyDevices devices({model}, 0.05, faults, 1);
  PassCounter counter;
  std::unique_ptr<Policy> policy = std::make_unique<SchedulerPolicy>(
      SchedulerOptions{.cores = 1}, std::vector<BatcherOptions>{{}}, std::vector<ModelOptions>{model});
  // The base class's Failed() reports a failed pass as any other pass.
  class Unaware final : public Policy {
   public:
    explicit Unaware(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}
    absl::Status Push(int of, std::unique_ptr<BatchTask>& task, absl::Time now) override {
      return policy_->Push(of, task, now);
    }
    std::optional<Batch> Next(absl::Time now) override { return policy_->Next(now); }
    void Finished(int of, int instance, absl::Time now, bool learn) override {
      policy_->Finished(of, instance, now, learn);
    }
    absl::Time wake_at() const override { return policy_->wake_at(); }

   private:
    std::unique_ptr<Policy> policy_;
  };
  if (!learns_of_failures) policy = std::make_unique<Unaware>(std::move(policy));
  Simulation simulation({.streams = {{.rate = load * capacity, .deadline = 100 * kMillisecond}},
                         .until = kSpan,
                         .seed = 1,
                         .ledger = {.from = kSecond, .to = kSpan}},
                        &devices, std::move(policy), nullptr, &counter);
  simulation.Run();
  EXPECT_EQ(simulation.mistakes().total(), 0);
  return {simulation.ledger().all(), counter.all(), counter.passes(kBroken)};
}

TEST(BrokenInstanceTest, CostsNothingIfTheOthersSuffice) {
  const Result run = Play(0.5, /*broken=*/true);
  EXPECT_EQ(run.tally[Outcome::kFailed], 0);
  EXPECT_GT(run.tally.Share(Outcome::kInTime), 0.999);
  // Three failures, and probes after 1, 2, 4, 8, 16 and 32 seconds.
  EXPECT_LE(run.broken_passes, 12);
}

TEST(BrokenInstanceTest, CostsItsShareUnderOverload) {
  const Result healthy = Play(2, /*broken=*/false);
  const Result run = Play(2, /*broken=*/true);
  EXPECT_EQ(run.tally[Outcome::kFailed], 0);
  EXPECT_GE(static_cast<double>(run.tally[Outcome::kInTime]),
            0.97 * 0.75 * static_cast<double>(healthy.tally[Outcome::kInTime]));
}

// The same without the treatment: the broken instance is idle first, and most requests go to it.
TEST(BrokenInstanceTest, WouldAttractMostRequestsOtherwise) {
  const Result run = Play(0.9, /*broken=*/true, /*learns_of_failures=*/false);
  EXPECT_GT(run.tally.Share(Outcome::kFailed), 0.5);
}

}  // namespace
}  // namespace saccade::server::simulation
