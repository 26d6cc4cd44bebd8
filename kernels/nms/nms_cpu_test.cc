// Compares the CPU code, for every instruction set that this processor supports, with the definition.
#include "kernels/nms/nms_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/nms/nms_testing.h"

namespace saccade::kernels {
namespace {

template <typename A>
void RunCpu(NmsTestCase<A>& test, CpuIsa isa, int threads) {
  const NmsProblem problem = test.Problem();
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(NmsCpuWorkspaceBytes<A>(problem), std::byte{0xff});
  RunNmsCpu<A>(problem, isa, PlainThreads(threads), workspace.data());
}

class NmsCpu : public testing::TestWithParam<std::tuple<NmsTestConfig, CpuIsa>> {};

TEST_P(NmsCpu, IsTheDefinitionInFloat32ForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 7}) {
    NmsTestCase<float> test(std::get<0>(GetParam()), 1);
    RunCpu(test, std::get<1>(GetParam()), threads);
    EXPECT_EQ(test.Got(), test.Expected()) << threads << " threads";
  }
}

TEST_P(NmsCpu, IsTheDefinitionInFloat64) {
  NmsTestCase<double> test(std::get<0>(GetParam()), 2);
  RunCpu(test, std::get<1>(GetParam()), 2);
  EXPECT_EQ(test.Got(), test.Expected());
}

INSTANTIATE_TEST_SUITE_P(Configs, NmsCpu,
                         testing::Combine(testing::ValuesIn(NmsTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// Classes that are large enough for threads to split them.
INSTANTIATE_TEST_SUITE_P(
    Large, NmsCpu,
    testing::Combine(testing::Values(NmsTestConfig{.count = 2500}, NmsTestConfig{.count = 5000, .classes = 2},
                                     NmsTestConfig{.count = 2500, .grid = true, .threshold = 0.9}),
                     testing::ValuesIn(InstructionSets())));

TEST(NmsThresholdTest, IsRoundedDown) {
  EXPECT_EQ(RoundedDown<float>(0.5), 0.5f);
  EXPECT_LT(RoundedDown<float>(0.7), 0.7);
  EXPECT_LE(RoundedDown<float>(0.1), 0.1);
  EXPECT_LE(RoundedDown<float>(-0.1), -0.1);
  EXPECT_LE(RoundedDown<float>(-1e-60), -1e-60);
  EXPECT_EQ(RoundedDown<float>(1e-60), 0.0f);
}

}  // namespace
}  // namespace saccade::kernels
