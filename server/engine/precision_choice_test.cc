#include "server/engine/precision_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kStays[] = "precision auto stays at fp32: this processor has no instructions for bf16";
constexpr char kUnused[] = "quantized weights are not used: this processor has no instructions for int8";

// Without samples, so that nothing is loaded or measured.
class PrecisionChoiceTest : public ::testing::Test {
 protected:
  PrecisionChoiceTest() { settings_.options["precision"] = "auto"; }

  PrecisionChoice Choose(const NativePrecisions& native) {
    auto choice = ChoosePrecision(settings_, options_, native, Clock::Real());
    EXPECT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->precision, models::Precision::kFloat32);
    return *std::move(choice);
  }

  ModelSettings settings_;
  EngineOptions options_;
};

TEST_F(PrecisionChoiceTest, AutoSaysWhichInstructionsAreMissing) {
  const PrecisionChoice choice = Choose({});
  EXPECT_THAT(choice.reason, HasSubstr("avx512_bf16"));
  EXPECT_THAT(choice.lacks, ElementsAre(HasSubstr(kStays)));
}

TEST_F(PrecisionChoiceTest, AutoLacksNothingWhereBFloat16IsNative) {
  const PrecisionChoice choice = Choose({.bfloat16 = true});
  EXPECT_THAT(choice.reason, HasSubstr("no folder samples"));
  EXPECT_THAT(choice.lacks, IsEmpty());
}

TEST_F(PrecisionChoiceTest, QuantizedWeightsNeedInstructionsOfTheirOwn) {
  options_.version.int8_weights_path = "weights.int8.safetensors";
  EXPECT_THAT(Choose({}).lacks, ElementsAre(HasSubstr(kUnused), HasSubstr(kStays)));
  EXPECT_THAT(Choose({.bfloat16 = true}).lacks, ElementsAre(HasSubstr(kUnused)));
  // int8 is a choice, so it does not matter that bf16 is none.
  EXPECT_THAT(Choose({.int8 = true}).lacks, IsEmpty());
  EXPECT_THAT(Choose({.bfloat16 = true, .int8 = true}).lacks, IsEmpty());
}

TEST_F(PrecisionChoiceTest, AGpuNeedsNoInstructionsOfTheProcessor) {
  options_.gpu = 0;
  options_.version.int8_weights_path = "weights.int8.safetensors";
  EXPECT_THAT(Choose({}).lacks, IsEmpty());
}

TEST_F(PrecisionChoiceTest, APrecisionThatIsSetLacksNothing) {
  settings_.options["precision"] = "fp32";
  EXPECT_THAT(Choose({}).lacks, IsEmpty());
  settings_.options.erase("precision");
  EXPECT_THAT(Choose({}).lacks, IsEmpty());
}

TEST_F(PrecisionChoiceTest, SamplesChooseAmongWhatTheProcessorComputesItself) {
  using models::Precision;
  const auto compared = [this](const NativePrecisions& native) {
    return ComparedPrecisions(settings_, options_, native);
  };
  const NativePrecisions both = {.bfloat16 = true, .int8 = true};
  EXPECT_THAT(compared(both), IsEmpty()) << "there are no samples";
  settings_.samples = {"picture.jpg"};
  EXPECT_THAT(compared(both), ElementsAre(Precision::kFloat32, Precision::kBFloat16));
  EXPECT_THAT(compared({.int8 = true}), IsEmpty()) << "there are no quantized weights";
  options_.version.int8_weights_path = "weights.int8.safetensors";
  EXPECT_THAT(compared({.int8 = true}), ElementsAre(Precision::kFloat32, Precision::kInt8));
  EXPECT_THAT(compared(both), ElementsAre(Precision::kFloat32, Precision::kBFloat16, Precision::kInt8));
  EXPECT_THAT(compared({}), IsEmpty());
  settings_.options["precision"] = "bf16";
  EXPECT_THAT(compared(both), IsEmpty());
}

}  // namespace
}  // namespace saccade::server
