#include "models/device/instruction_set.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace saccade::models {
namespace {

// A processor with AVX2 alone computes other bits than one that is limited by only some of the variables.
TEST(InstructionSetTest, LimitsArePartOfIt) {
  std::map<std::string, const char*> values;
  const auto limits = [&] {
    return LimitsOfInstructionSet([&](const char* variable) {
      const auto found = values.find(variable);
      return found == values.end() ? nullptr : found->second;
    });
  };
  EXPECT_EQ(limits(), "");
  values["ONEDNN_MAX_CPU_ISA"] = "AVX2";
  EXPECT_EQ(limits(), " ONEDNN_MAX_CPU_ISA=AVX2");
  values["SACCADE_CPU_ISA"] = "avx2";
  values["ATEN_CPU_CAPABILITY"] = "";
  values["DNNL_MAX_CPU_ISA"] = "\xff";
  EXPECT_EQ(limits(), " SACCADE_CPU_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2");
  values["ATEN_CPU_CAPABILITY"] = "avx2";
  EXPECT_EQ(limits(), " SACCADE_CPU_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2");
}

TEST(InstructionSetTest, NamesWhatTheMachineHas) {
  EXPECT_EQ(InstructionSetText({}), "portable");
  EXPECT_EQ(InstructionSetText({.isa = "avx2", .int8 = true}), "avx2+vnni");
  EXPECT_EQ(InstructionSetText({.isa = "avx512", .bfloat16 = true, .int8 = true}), "avx512+bf16+vnni");
}

// oneDNN rounds int8 differently with AMX.
TEST(InstructionSetTest, AMachineWithAmxDiffersFromOneWithout) {
  EXPECT_EQ(InstructionSetText({.isa = "avx512", .bfloat16 = true, .int8 = true, .amx = true}),
            "avx512+bf16+vnni+amx");
}

TEST(InstructionSetTest, ALimitOfOneDnnMayKeepItFromAmx) {
  std::map<std::string, const char*> values;
  const auto allows = [&] {
    return LimitAllowsAmx([&](const char* variable) {
      const auto found = values.find(variable);
      return found == values.end() ? nullptr : found->second;
    });
  };
  EXPECT_TRUE(allows());
  values["DNNL_MAX_CPU_ISA"] = "AVX512_CORE_BF16";
  EXPECT_FALSE(allows());
  values["DNNL_MAX_CPU_ISA"] = "avx2";
  EXPECT_FALSE(allows());
  values["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_AMX";
  EXPECT_TRUE(allows()) << "its first name counts";
  values["ONEDNN_MAX_CPU_ISA"] = "AVX1024";
  EXPECT_TRUE(allows()) << "oneDNN ignores what it does not know";
}

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
