#include "server/simulation/online_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "server/simulation/online_policy.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {
namespace {

// At most one item a slot.
SlottedArrivals Bernoulli(double probability) {
  return {.states = {{.arrives = probability}}, .counts = {1}};
}

// The value of an idle instance without items, by value iteration over every set of ages that queued items
// can have: bit i is set if an item is i slots old. If `plan` is null, any items may be dropped and computed
// at any time; otherwise the plan decides.
double ValueOfAllSets(const OnlinePlan::Options& options, double probability, const OnlinePlan* plan) {
  const auto pass = [&](int64_t batch) {
    return std::lround(options.latency(static_cast<double>(batch)) / (options.deadline / options.slots));
  };
  const uint32_t sets = 1u << (options.slots + 1);
  const double discount = 1 - 1 / (options.horizon * options.slots);
  std::vector<double> value(sets);
  for (int sweep = 0; sweep < 300; ++sweep) {
    // The value of a set with so many more slots to compute.
    std::vector<std::vector<double>> later = {value};
    for (int slots = 1; slots <= options.slots; ++slots) {
      std::vector<double> before(sets);
      for (uint32_t set = 0; set < sets; ++set) {
        const uint32_t older = (set << 1) & (sets - 1);
        before[set] = probability * later.back()[older | 1] + (1 - probability) * later.back()[older];
      }
      later.push_back(std::move(before));
    }
    const auto start = [&](int64_t size, uint32_t left) {
      const auto slots = static_cast<size_t>(pass(size));
      return static_cast<double>(size) + std::pow(discount, slots) * later[slots][left];
    };
    for (uint32_t set = 0; set < sets; ++set) {
      value[set] = discount * later[1][set];
      if (plan != nullptr) {
        std::vector<double> ages;
        for (int age = options.slots; age >= 0; --age) {
          if (set >> age & 1) ages.push_back(age);
        }
        const OnlinePlan::Choice choice = plan->Choose(ages, 0);
        uint32_t left = set;
        for (int64_t i = 0; i < choice.late + choice.batch; ++i) left &= ~std::bit_floor(left);
        if (choice.batch > 0) value[set] = start(choice.batch, left);
        continue;
      }
      for (uint32_t batch = set; batch != 0; batch = (batch - 1) & set) {
        const int64_t size = std::popcount(batch);
        if (size > options.max_batch_size || std::bit_width(batch) - 1 + pass(size) > options.slots) continue;
        value[set] = std::max(value[set], start(size, set & ~batch));
      }
    }
  }
  return value[0];
}

TEST(OnlinePlanTest, IsNearlyAsGoodAsTheBestOfAllChoices) {
  for (const int fixed : {0, 1, 2, 3}) {
    for (const double probability : {0.2, 0.5, 0.8}) {
      for (const int64_t max_batch_size : {1, 8}) {
        const OnlinePlan::Options options = {
            .latency = {.alpha = static_cast<double>(fixed) * kMillisecond, .beta = kMillisecond},
            .deadline = 7 * kMillisecond,
            .max_batch_size = max_batch_size,
            .slots = 7,
            .newest_age = 0,
            .horizon = 10,
            .sweeps = 400};
        const OnlinePlan plan(options, Bernoulli(probability));
        const double reached = ValueOfAllSets(options, probability, &plan);
        const double best = ValueOfAllSets(options, probability, nullptr);
        EXPECT_LE(reached, best * 1.0001);
        EXPECT_GE(reached, best * 0.98)
            << "alpha " << fixed << ", probability " << probability << ", batches of " << max_batch_size;
      }
    }
  }
}

TEST(SlottedArrivalsTest, RatesAreThoseOfTheStream) {
  for (const double cv : {1.0, 2.0, 4.0, 8.0}) {
    for (const double per_slot : {0.05, 1.0, 3.0}) {
      const SlottedArrivals arrivals = ArrivalsOf(per_slot, cv);
      // The mean number of slots between two slots with arrivals, and of items in one.
      double slots = 0;
      double reached = 1;
      for (const auto& state : arrivals.states) {
        slots += reached / (state.arrives + state.advances);
        reached *= state.advances / (state.arrives + state.advances);
      }
      EXPECT_EQ(reached, 0) << "the last state is left by an arrival";
      double items = 0;
      double tail = 1;
      for (size_t i = 0; i < arrivals.counts.size(); ++i) {
        items += static_cast<double>(i + 1) * arrivals.counts[i];
        tail -= arrivals.counts[i];
      }
      items += tail * (static_cast<double>(arrivals.counts.size()) + 1 / (1 - arrivals.more));
      EXPECT_NEAR(items / slots / per_slot, 1, 0.05) << "CV " << cv << ", " << per_slot << " per slot";
    }
  }
}

Tally Served(const OnlinePlan::Options& options, double rate, double* busy) {
  const std::vector<ModelOptions> models = {ModelOptions{.latency = options.latency}};
  const double per_slot = rate * (options.deadline / options.slots).count() * 1e-9;
  SimDevices device(models, 0, 1);
  const Nanos until = 60 * kSecond;
  Simulation simulation(
      {.streams = {{.rate = rate, .deadline = options.deadline}},
       .until = until,
       .seed = 1,
       .ledger = {.from = {}, .to = until, .slot = {}}},
      &device,
      std::make_unique<OnlinePolicy>(std::make_shared<const OnlinePlan>(options, ArrivalsOf(per_slot, 1))));
  simulation.Run();
  EXPECT_EQ(simulation.mistakes().total(), 0);
  *busy = simulation.busy(0) / until;
  return simulation.ledger().all();
}

// Passes of 5 ms and one item each: an instance that serves all is busy for rate * 5 ms of the time, and one
// that cannot is busy all the time.
TEST(OnlinePolicyTest, BatchesOfOneAreAQueueWithConstantService) {
  const OnlinePlan::Options options = {.latency = {.alpha = 4 * kMillisecond, .beta = kMillisecond},
                                       .deadline = 200 * kMillisecond,
                                       .max_batch_size = 1,
                                       .slots = 80};
  double busy = 0;
  EXPECT_GT(Served(options, 160, &busy).Share(Outcome::kInTime), 0.999);
  EXPECT_NEAR(busy, 0.8, 0.02);
  EXPECT_NEAR(Served(options, 250, &busy).Share(Outcome::kInTime), 0.8, 0.015);
  EXPECT_NEAR(busy, 1, 0.01);
}

TEST(OnlinePolicyTest, NothingItComputesIsLate) {
  const OnlinePlan::Options options = {.latency = {.alpha = 5 * kMillisecond, .beta = kMillisecond / 2},
                                       .deadline = 50 * kMillisecond};
  double busy = 0;
  const Tally tally = Served(options, 2500, &busy);
  EXPECT_EQ(tally[Outcome::kLate], 0);
  EXPECT_GT(tally[Outcome::kShed], 0);
  // A batch that takes the whole deadline has 90 items and takes 50 ms.
  EXPECT_LE(tally.Share(Outcome::kInTime) * 2500, 1800);
  EXPECT_GT(tally.Share(Outcome::kInTime) * 2500, 1500);
}

}  // namespace
}  // namespace saccade::server::simulation
