#include "server/engine/precision_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "models/weights/format/write_safetensors.h"
#include "models/weights/quantized_file.h"
#include "server/repository/checksums.h"

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

// Between replicas of a model, and between two loads, times differ by a few percent.
TEST_F(PrecisionChoiceTest, SmallGainsDecideNothing) {
  EXPECT_FALSE(IsClearlyFaster(0.97, 1));
  EXPECT_TRUE(IsClearlyFaster(0.94, 1));
  EXPECT_FALSE(IsClearlyFaster(0.59, 0.6));
  EXPECT_TRUE(IsClearlyFaster(0.5, 0.6));
}

TEST_F(PrecisionChoiceTest, QuantizedWeightsOfOtherWeightsAreNotUsed) {
  const std::string folder = ::testing::TempDir() + "/precision_choice." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const absl::Cleanup remove = [&] { std::filesystem::remove_all(folder); };
  const std::string weights = folder + "/weights.safetensors";
  const std::string int8 = folder + "/weights.int8.safetensors";
  const auto write = [&](const std::string& bytes) {
    models::WriteSafetensors({{"a.bias", models::ElementType::kF32, {1}, bytes}}, weights);
  };
  write("1234");
  options_.version = {.version = 1, .weights_path = weights, .int8_weights_path = int8};
  models::WriteQuantized(weights, {}, int8, {{models::kSourceDigestName, FileSum(weights).value()}});
  EXPECT_TRUE(CheckQuantizedFrom(options_.version).ok());
  int sums = 0;
  options_.file_sum = [&](const std::string& path) {
    ++sums;
    return FileSum(path);
  };
  EXPECT_THAT(Choose({.int8 = true}).reason, HasSubstr("no folder samples"));
  EXPECT_EQ(sums, 1) << "the checksum may be known already";
  write("4321");
  EXPECT_THAT(Choose({.int8 = true}).reason, HasSubstr("was made from other weights"));
  settings_.options["precision"] = "int8";
  const auto set = ChoosePrecision(settings_, options_, {.int8 = true}, Clock::Real());
  EXPECT_TRUE(absl::IsFailedPrecondition(set.status()));
  EXPECT_THAT(std::string(set.status().message()), HasSubstr("run saccade quantize again"));
  // Files of other programs do not say from which weights they are.
  models::WriteQuantized(weights, {}, int8);
  EXPECT_TRUE(CheckQuantizedFrom(options_.version).ok());
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
