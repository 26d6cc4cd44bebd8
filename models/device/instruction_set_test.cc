#include "models/device/instruction_set.h"

#include <gtest/gtest.h>

namespace saccade::models {
namespace {

// Replays and proofs demand equal bits where instruction sets are equal.
TEST(InstructionSetTest, DifferentGpusAreDifferentInstructionSets) {
  const std::string h200 = "NVIDIA H200 sm_90";
  EXPECT_EQ(CudaInstructionSet({h200}), "cuda NVIDIA H200 sm_90");
  EXPECT_NE(CudaInstructionSet({h200}), CudaInstructionSet({"NVIDIA L4 sm_89"}));
}

TEST(InstructionSetTest, AKindOfGpuIsNamedOnce) {
  EXPECT_EQ(CudaInstructionSet({"B sm_90", "A sm_80", "B sm_90"}), "cuda A sm_80 + B sm_90");
}

TEST(InstructionSetTest, GpusWithoutANameAreCuda) {
  EXPECT_EQ(CudaInstructionSet({}), "cuda");
  EXPECT_EQ(CudaInstructionSet({""}), "cuda");
  // There is no such GPU.
  EXPECT_EQ(InstructionSetOfGpus({1000}), "cuda");
}

}  // namespace
}  // namespace saccade::models
