#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/scheduler.h"
#include "server/batching/testing/recording_task.h"

namespace saccade::server {
namespace {

using absl::Milliseconds;

// Passes on several GPUs with one core each; models may have instances on several of them.
class DevicesTest : public ::testing::Test {
 protected:
  void Push(Scheduler::ModelId model, int tasks) {
    for (int i = 0; i < tasks; ++i) {
      Watched watched = MakeTask({.arrival = now_});
      ASSERT_TRUE(scheduler_.Push(model, watched.task, now_, &dropped_).ok());
    }
  }

  // Starts everything that may start now.
  std::vector<Scheduler::Batch> Begin() {
    std::vector<Scheduler::Batch> begun;
    while (auto batch = scheduler_.Next(now_, &dropped_)) begun.push_back(*std::move(batch));
    return begun;
  }

  // Keeps all models busy with passes of 10 ms. Returns the number of passes by model and instance.
  std::map<Scheduler::ModelId, std::vector<int>> Saturate(const std::map<Scheduler::ModelId, int>& instances,
                                                          int rounds) {
    std::map<Scheduler::ModelId, std::vector<int>> passes;
    for (const auto& [model, count] : instances) passes[model].resize(count);
    for (int i = 0; i < rounds; ++i) {
      for (const auto& [model, count] : instances)
        Push(model, 8 - static_cast<int>(scheduler_.queued(model)));
      const std::vector<Scheduler::Batch> begun = Begin();
      now_ += Milliseconds(10);
      for (const auto& batch : begun) {
        ++passes[batch.model][batch.instance];
        scheduler_.Finished(batch.model, batch.instance, now_, true);
      }
    }
    return passes;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Scheduler scheduler_{{.cores = 1}};
  std::vector<Scheduler::Dropped> dropped_;
};

TEST_F(DevicesTest, AModelOnTwoGpusComputesOnBoth) {
  const auto model = scheduler_.AddModel({.max_batch_size = 1}, {0, 0, 1, 1});
  Push(model, 4);
  const auto begun = Begin();
  ASSERT_EQ(begun.size(), 2u) << "one core each";
  EXPECT_EQ(std::set<int>({begun[0].instance / 2, begun[1].instance / 2}), std::set<int>({0, 1}));
  for (const auto& batch : begun) scheduler_.Finished(model, batch.instance, now_, true);
  EXPECT_EQ(Begin().size(), 2u);
}

TEST_F(DevicesTest, OneGpuThatIsBusyHoldsUpNobodyOnAnother) {
  const auto first = scheduler_.AddModel({.max_batch_size = 1}, {0});
  const auto second = scheduler_.AddModel({.max_batch_size = 1}, {1});
  const auto third = scheduler_.AddModel({.max_batch_size = 1}, {0});
  Saturate({{second, 1}}, 50);
  Push(first, 1);
  ASSERT_EQ(Begin().size(), 2u) << "one on each GPU";
  // `third` has used the least time and waits for its GPU; `second` has used much and continues on the other.
  Push(third, 1);
  EXPECT_TRUE(Begin().empty());
  scheduler_.Finished(second, 0, now_, true);
  const auto begun = Begin();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].model, second);
}

TEST_F(DevicesTest, AModelOnBothGpusSharesEachWithWhoIsThere) {
  const auto both = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  const auto heavy = scheduler_.AddModel({.max_batch_size = 1, .weight = 3}, {1});
  for (const auto model : {both, heavy}) scheduler_.Learn(model, 0, 1, Milliseconds(10));
  const auto passes = Saturate({{both, 2}, {heavy, 1}}, 400);
  EXPECT_EQ(passes.at(both)[0], 400) << "it is alone there";
  EXPECT_NEAR(passes.at(both)[1], 100, 4);
  EXPECT_NEAR(passes.at(heavy)[0], 300, 4);
}

// A model that was alone on its GPU for long owes nothing to a model that is added there.
TEST_F(DevicesTest, WhoComesAnewHasItsShareOfEachGpuAtOnce) {
  const auto first = scheduler_.AddModel({.max_batch_size = 1}, {0});
  scheduler_.Learn(first, 0, 1, Milliseconds(10));
  Saturate({{first, 1}}, 1000);
  const auto both = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  scheduler_.Learn(both, 0, 1, Milliseconds(10));
  const auto passes = Saturate({{first, 1}, {both, 2}}, 100);
  EXPECT_NEAR(passes.at(first)[0], 50, 4);
  EXPECT_NEAR(passes.at(both)[0], 50, 4);
  EXPECT_EQ(passes.at(both)[1], 100);
}

// `both` always computes on the first GPU and is idle on the second; that earns it no credit on the second.
TEST_F(DevicesTest, WhoHadLittleToDoForLongStarvesNobodyThen) {
  const auto both = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  const auto other = scheduler_.AddModel({.max_batch_size = 1}, {1});
  for (const auto model : {both, other}) scheduler_.Learn(model, 0, 1, Milliseconds(10));
  // Passes on the two GPUs start half a pass apart, so that one of them is always running.
  Push(both, 1);
  std::vector<Scheduler::Batch> on_first = Begin();
  for (int i = 0; i < 1000; ++i) {
    Push(other, 1);
    std::vector<Scheduler::Batch> on_second = Begin();
    ASSERT_EQ(on_second.size(), 1u);
    now_ += Milliseconds(5);
    Push(both, 1);
    scheduler_.Finished(both, on_first[0].instance, now_, true);
    on_first = Begin();
    ASSERT_EQ(on_first.size(), 1u);
    ASSERT_EQ(on_first[0].instance, 0);
    now_ += Milliseconds(5);
    scheduler_.Finished(other, on_second[0].instance, now_, true);
  }
  Push(both, 8);
  scheduler_.Finished(both, 0, now_, true);
  const auto passes = Saturate({{both, 2}, {other, 1}}, 100);
  EXPECT_NEAR(passes.at(other)[0], 50, 6);
}

TEST_F(DevicesTest, ALongPassGivesUpTheCoresOfItsOwnGpu) {
  const auto slow = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  const auto quick = scheduler_.AddModel({.max_batch_size = 1}, {1});
  Push(slow, 2);
  ASSERT_EQ(Begin().size(), 2u);
  Push(quick, 1);
  EXPECT_TRUE(Begin().empty());
  now_ += absl::Seconds(1);
  const auto begun = Begin();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].model, quick);
  Push(quick, 1);
  scheduler_.Finished(quick, 0, now_, true);
  for (const int instance : {0, 1}) scheduler_.Finished(slow, instance, now_, true);
  Push(slow, 2);
  EXPECT_EQ(Begin().size(), 2u) << "one on each, as before";
}

TEST_F(DevicesTest, WhatAModelHeldIsFreeWhenItIsGone) {
  const auto gone = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  const auto stays = scheduler_.AddModel({.max_batch_size = 1}, {0, 1});
  Push(gone, 2);
  ASSERT_EQ(Begin().size(), 2u);
  Push(stays, 2);
  EXPECT_TRUE(Begin().empty());
  scheduler_.RemoveModel(gone);
  EXPECT_EQ(Begin().size(), 2u);
}

TEST_F(DevicesTest, TwoGpusAreTakenForWhatTheyCanDoTogether) {
  const auto let_in = [this](int cores, const Devices& devices) {
    Scheduler scheduler({.cores = cores});
    const auto model = scheduler.AddModel({.max_batch_size = 1}, devices);
    for (int i = 0; i < 1000; ++i) scheduler.Learn(model, 0, 1, Milliseconds(10));
    int taken = 0;
    for (int i = 0; i < 200; ++i) {
      Watched watched = MakeTask({.arrival = now_, .deadline = now_ + Milliseconds(100)});
      if (scheduler.Push(model, watched.task, now_, &dropped_).ok()) ++taken;
    }
    return taken;
  };
  EXPECT_GE(let_in(1, {0}), 10) << "so many can be in time";
  EXPECT_EQ(let_in(1, {0, 0}), let_in(1, {0})) << "two instances share one core";
  EXPECT_GT(let_in(1, {0, 1}), 1.5 * let_in(1, {0}));
  EXPECT_EQ(let_in(1, {0, 1}), let_in(2, {0, 0})) << "as two instances with a core each, wherever they are";
}

}  // namespace
}  // namespace saccade::server
