#include "models/device/separate_cores.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>

#include "kernels/common/parallel.h"
#include "models/device/use_threads.h"

namespace saccade::models {
namespace {

cpu_set_t Set(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  return set;
}

using Cores = std::vector<int>;

TEST(AssignCoresTest, ThreadsThatShareACoreGetFreeOnes) {
  EXPECT_EQ(AssignCores({0, 1}, Set({0, 1})), (Cores{0, 1}));
  EXPECT_EQ(AssignCores({1, 1}, Set({0, 1})), (Cores{1, 0}));
  EXPECT_EQ(AssignCores({3, 3, 3, 5}, Set({1, 3, 5, 7})), (Cores{3, 1, 7, 5}));
  // A core that is taken by a later thread is not free.
  EXPECT_EQ(AssignCores({0, 0, 1}, Set({0, 1, 2})), (Cores{0, 2, 1}));
}

TEST(AssignCoresTest, WithoutFreeCoresTheyStay) { EXPECT_EQ(AssignCores({4, 4}, Set({4})), (Cores{4, 4})); }

TEST(AssignCoresTest, OnlyAllowedCoresAreUsed) { EXPECT_EQ(AssignCores({2, 2}, Set({2, 9})), (Cores{2, 9})); }

class SeparateCoresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed_), &allowed_), 0);
    if (CPU_COUNT(&allowed_) < 2) GTEST_SKIP() << "there is one core";
    UseThreads(2);
  }

  static void OnBoth(const kernels::Parallel::Task& task) { kernels::TorchParallel().run(2, 1, task); }

  // The masks of both threads, as numbers of cores, and whether they have a core in common.
  std::pair<std::vector<int>, bool> Masks() const {
    std::vector<cpu_set_t> masks(2);
    OnBoth([&](int64_t, int64_t, int thread) {
      sched_getaffinity(0, sizeof(cpu_set_t), &masks[static_cast<size_t>(thread)]);
    });
    cpu_set_t both;
    CPU_AND(&both, &masks[0], &masks[1]);
    return {{CPU_COUNT(&masks[0]), CPU_COUNT(&masks[1])}, CPU_COUNT(&both) > 0};
  }

  // Puts both threads on one core, which they may leave.
  void Together() const {
    const int core = sched_getcpu();
    OnBoth([&](int64_t, int64_t, int) {
      const cpu_set_t one = Set({core});
      sched_setaffinity(0, sizeof(one), &one);
    });
    OnBoth([&](int64_t, int64_t, int) { sched_setaffinity(0, sizeof(allowed_), &allowed_); });
  }

  cpu_set_t allowed_{};
};

TEST_F(SeparateCoresTest, NoThreadMayUseTheOthersCore) {
  for (int round = 0; round < 20; ++round) {
    Together();
    {
      const SeparateCores own;
      std::vector<int> cores(2);
      OnBoth([&](int64_t, int64_t, int thread) { cores[static_cast<size_t>(thread)] = sched_getcpu(); });
      EXPECT_NE(cores[0], cores[1]);
      const auto [counts, common] = Masks();
      // With two cores each has one. With more, both may still use the ones that neither was on.
      EXPECT_EQ(counts, std::vector<int>(2, CPU_COUNT(&allowed_) - 1));
      EXPECT_EQ(common, CPU_COUNT(&allowed_) > 2);
    }
    EXPECT_EQ(Masks().first, std::vector<int>(2, CPU_COUNT(&allowed_)));
  }
}

TEST_F(SeparateCoresTest, APassThatThrowsLeavesNothingBehind) {
  try {
    const SeparateCores own;
    throw std::runtime_error("a pass failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(Masks().first, std::vector<int>(2, CPU_COUNT(&allowed_)));
}

TEST_F(SeparateCoresTest, OneThreadIsLeftAlone) {
  std::thread([&] {
    UseThreads(1);
    const SeparateCores own;
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_TRUE(CPU_EQUAL(&mask, &allowed_));
  }).join();
}

TEST_F(SeparateCoresTest, FewerCoresThanThreadsAreShared) {
  std::thread([&] {
    UseThreads(2);
    const cpu_set_t one = Set({sched_getcpu()});
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    const SeparateCores own;
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_TRUE(CPU_EQUAL(&mask, &one));
  }).join();
}

}  // namespace
}  // namespace saccade::models
