// Compares the CPU code, for every instruction set that this processor supports, with the formulas in
// float64.
#include "kernels/expatt/expatt_cpu.h"

#include <gtest/gtest.h>

#include <thread>
#include <tuple>

#include "kernels/common/bfloat16.h"
#include "kernels/expatt/expatt_tables.h"
#include "kernels/expatt/expatt_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(ExpattTestCase<T>& test, CpuIsa isa, int threads) {
  const ExpattProblem problem = test.Problem();
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(ExpattCpuWorkspaceBytes<Accumulate<T>>(problem, threads), std::byte{0xff});
  RunExpattCpu<Accumulate<T>>(problem, isa, PlainThreads(threads), workspace.data());
}

class ExpattCpu : public testing::TestWithParam<std::tuple<ExpattTestConfig, CpuIsa>> {
 protected:
  const ExpattTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(ExpattCpu, MatchesTheFormulasInFloat32) {
  ExpattTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(ExpattCpu, MatchesTheFormulasInBFloat16) {
  ExpattTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(ExpattCpu, MatchesTheFormulasInFloat64) {
  ExpattTestCase<double> test(config(), 3);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-13);
}

TEST_P(ExpattCpu, DoesNotDependOnTheNumberOfThreads) {
  ExpattTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    ExpattTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, ExpattCpu,
                         testing::Combine(testing::ValuesIn(ExpattTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// Every method of applying a map, at a size and a radius that select it.
class ExpattMethods : public testing::TestWithParam<std::tuple<ExpattKind, int64_t, double, ExpattMethod>> {};

TEST_P(ExpattMethods, AreTakenAndMatchTheFormulas) {
  const auto [kind, size, sigma, method] = GetParam();
  EXPECT_EQ(ExpattTablesFor<float>(kind, size, size + 1, sigma)->method, method);
  ExpattTestCase<float> test({.kind = kind, .channels = 3, .height = size, .width = size + 1, .sigma = sigma},
                             5);
  RunCpu(test, BestCpuIsa(), 1);
  EXPECT_LE(test.Error(), 5e-7);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, ExpattMethods,
    testing::Values(std::tuple(ExpattKind::kGaussian, 30, 0.75, ExpattMethod::kFactored),
                    std::tuple(ExpattKind::kGaussian, 30, 0.25, ExpattMethod::kFactored),
                    std::tuple(ExpattKind::kGaussian, 30, 0.02, ExpattMethod::kProducts),
                    std::tuple(ExpattKind::kGaussian, 5, 0.5, ExpattMethod::kProducts),
                    std::tuple(ExpattKind::kExponentialManhattan, 8, 0.75, ExpattMethod::kProducts),
                    std::tuple(ExpattKind::kExponentialManhattan, 30, 0.75, ExpattMethod::kRecursion),
                    std::tuple(ExpattKind::kExponentialManhattan, 30, 0.001, ExpattMethod::kRecursion),
                    std::tuple(ExpattKind::kExponentialManhattan, 30, 1000.0, ExpattMethod::kRecursion),
                    std::tuple(ExpattKind::kExponentialEuclidean, 30, 0.05, ExpattMethod::kFrequencies),
                    std::tuple(ExpattKind::kLinear, 30, 1.0, ExpattMethod::kFrequencies),
                    std::tuple(ExpattKind::kCosine, 31, 1.0, ExpattMethod::kFrequencies)));

TEST(ExpattTablesTest, AreBuiltOncePerKindExtentAndSigma) {
  const auto tables = ExpattTablesFor<float>(ExpattKind::kGaussian, 6, 9, 0.5);
  EXPECT_EQ(ExpattTablesFor<float>(ExpattKind::kGaussian, 6, 9, 0.5), tables);
  EXPECT_NE(ExpattTablesFor<float>(ExpattKind::kGaussian, 9, 6, 0.5), tables);
  EXPECT_NE(ExpattTablesFor<float>(ExpattKind::kGaussian, 6, 9, 0.25), tables);
  EXPECT_NE(ExpattTablesFor<float>(ExpattKind::kExponentialManhattan, 6, 9, 0.5), tables);
  // This kind ignores sigma.
  EXPECT_EQ(ExpattTablesFor<float>(ExpattKind::kLinear, 6, 9, 0.5),
            ExpattTablesFor<float>(ExpattKind::kLinear, 6, 9, 0.25));
}

TEST(ExpattTablesTest, TheCacheIsBoundedAndKeepsWhatIsUsed) {
  const auto used = ExpattTablesFor<double>(ExpattKind::kLinear, 3, 4, 1);
  size_t built = 0;
  for (int64_t size = 60; built < 3 * kExpattTablesBytes; ++size) {
    built += ExpattTablesFor<double>(ExpattKind::kLinear, size, 900, 1)->bytes();
    EXPECT_LE(ExpattTablesBytesHeld<double>(), kExpattTablesBytes);
    EXPECT_EQ(ExpattTablesFor<double>(ExpattKind::kLinear, 3, 4, 1), used);
  }
  EXPECT_GT(ExpattTablesBytesHeld<double>(), kExpattTablesBytes / 2);
}

TEST(ExpattTablesTest, ManyThreadsMayAsk) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int64_t i = 0; i < 200; ++i) {
        const auto tables = ExpattTablesFor<float>(ExpattKind::kLinear, 1 + i % 7, 3, 1);
        EXPECT_EQ(tables->inverse.rows, 1 + i % 7);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace saccade::kernels
