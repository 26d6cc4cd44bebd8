// Compares the CUDA kernels of nms.cuh, compiled by g++ and run on the CPU, with the definition.
#include <gtest/gtest.h>

#include "kernels/device/launch.cuh"
#include "kernels/nms/nms.cuh"
#include "kernels/nms/nms_testing.h"

namespace saccade::kernels {
namespace {

template <typename A>
void RunEmulated(NmsTestCase<A>& test, uint64_t seed) {
  const NmsProblem problem = test.Problem();
  const std::vector<int64_t> order = test.Order();
  std::vector<uint64_t> mask(NmsCuda(problem, nullptr, nullptr).WordsOfMask(), ~uint64_t{0});
  RunNmsCuda<A>(problem, order.data(), mask.data(), EmulatedLaunch{seed});
}

class NmsEmulated : public testing::TestWithParam<NmsTestConfig> {};

// Runs two orders of threads: a missing barrier would change the result.
TEST_P(NmsEmulated, IsTheDefinitionInFloat32) {
  for (const uint64_t seed : {1, 2}) {
    NmsTestCase<float> test(GetParam(), 1);
    RunEmulated(test, seed);
    EXPECT_EQ(test.Got(), test.Expected());
  }
}

TEST_P(NmsEmulated, IsTheDefinitionInFloat64) {
  NmsTestCase<double> test(GetParam(), 2);
  RunEmulated(test, 1);
  EXPECT_EQ(test.Got(), test.Expected());
}

INSTANTIATE_TEST_SUITE_P(Configs, NmsEmulated, testing::ValuesIn(NmsTestConfigs()));

}  // namespace
}  // namespace saccade::kernels
