// Compares the CPU code, for every instruction set that this processor supports, with the definition.
#include "kernels/roi_align/roi_align_cpu.h"

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/common/bfloat16.h"
#include "kernels/roi_align/roi_align_testing.h"

namespace saccade::kernels {
namespace {

template <typename T>
void RunCpu(RoiAlignTestCase<T>& test, CpuIsa isa, int threads) {
  const RoiAlignProblem problem = test.Problem();
  // Exactly as long as promised, and filled with NaN: all bits set is a NaN in every type.
  std::vector<std::byte> workspace(RoiAlignCpuWorkspaceBytes<T>(problem, threads), std::byte{0xff});
  RunRoiAlignCpu<T>(problem, isa, PlainThreads(threads), workspace.data());
}

class RoiAlignCpu : public testing::TestWithParam<std::tuple<RoiAlignTestConfig, CpuIsa>> {
 protected:
  const RoiAlignTestConfig& config() const { return std::get<0>(GetParam()); }
  CpuIsa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(RoiAlignCpu, IsTheDefinitionInFloat32) {
  RoiAlignTestCase<float> test(config(), 1);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-6);
}

TEST_P(RoiAlignCpu, IsTheDefinitionInBFloat16) {
  RoiAlignTestCase<BFloat16> test(config(), 2);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-2);
}

TEST_P(RoiAlignCpu, IsTheDefinitionInFloat64) {
  RoiAlignTestCase<double> test(config(), 3);
  RunCpu(test, isa(), 2);
  EXPECT_LE(test.Error(), 1e-12);
}

TEST_P(RoiAlignCpu, DoesNotDependOnTheNumberOfThreads) {
  RoiAlignTestCase<float> first(config(), 4);
  RunCpu(first, isa(), 1);
  for (const int threads : {2, 3, 7}) {
    RoiAlignTestCase<float> again(config(), 4);
    RunCpu(again, isa(), threads);
    EXPECT_TRUE(SameBits(first.out(), again.out())) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, RoiAlignCpu,
                         testing::Combine(testing::ValuesIn(RoiAlignTestConfigs()),
                                          testing::ValuesIn(InstructionSets())));

// More regions and channels than one task handles.
INSTANTIATE_TEST_SUITE_P(Tasks, RoiAlignCpu,
                         testing::Combine(testing::Values(RoiAlignTestConfig{.channels = 70, .regions = 150},
                                                          RoiAlignTestConfig{
                                                              .channels = 70,
                                                              .regions = 150,
                                                              .layout = RoiAlignTestConfig::kChannelsLast}),
                                          testing::ValuesIn(InstructionSets())));

}  // namespace
}  // namespace saccade::kernels
