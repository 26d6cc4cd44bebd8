#include "models/device/float32_use.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "models/api/error.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string WhyNot(bool tf32, const std::string& asked) {
  try {
    const Float32Use use(tf32, asked);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

bool AllowsTf32() {
  const bool of_convolutions = at::globalContext().allowTF32CuDNN();
  EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), of_convolutions);
  return of_convolutions;
}

TEST(Float32UseTest, TheSettingHoldsAsLongAsAModelHasIt) {
  std::optional<Float32Use> first(std::in_place, false, "precision is fp32");
  EXPECT_FALSE(AllowsTf32());
  std::optional<Float32Use> second(std::in_place, false, "precision is fp32");
  EXPECT_THAT(WhyNot(true, "precision is tf32"),
              AllOf(StartsWith("precision is tf32, but"), HasSubstr("without TF32"), HasSubstr("unload")));
  first.reset();
  EXPECT_NE(WhyNot(true, "precision is tf32"), "");
  EXPECT_FALSE(AllowsTf32());
}

TEST(Float32UseTest, AModelThatWasUnloadedOrFailedToLoadBindsNobody) {
  EXPECT_EQ(WhyNot(false, "precision is fp32"), "");
  const Float32Use tf32(true, "precision is tf32");
  EXPECT_TRUE(AllowsTf32());
  EXPECT_THAT(WhyNot(false, "parameter ALLOW_TF32 is not true"),
              AllOf(StartsWith("parameter ALLOW_TF32 is not true, but"), HasSubstr("with TF32")));
}

// LibTorch allows TF32 in convolutions by default, so the first model has to say that it does not want it.
TEST(Float32UseTest, TheDefaultOfLibTorchDoesNotDecide) {
  at::globalContext().setAllowTF32CuDNN(true);
  const Float32Use use(false, "precision is fp32");
  EXPECT_FALSE(AllowsTf32());
}

}  // namespace
}  // namespace saccade::models
