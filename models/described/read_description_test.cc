#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/described/picture_program.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> StridesOf(const std::string& member) {
  return ReadDescription(R"({"head": {"kind": "grid")" + member + "}}").head.strides;
}

// Returns the message of the LoadError; empty if there is none.
std::string ErrorOf(const std::string& json) {
  try {
    ReadDescription(json);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(ReadDescription, OneStrideIsANumberOrAList) {
  EXPECT_THAT(StridesOf(""), IsEmpty());
  EXPECT_THAT(StridesOf(R"(, "strides": 32)"), ElementsAre(32));
  EXPECT_THAT(StridesOf(R"(, "strides": [32])"), ElementsAre(32));
  EXPECT_THAT(StridesOf(R"(, "strides": [8, 16, 32.0])"), ElementsAre(8, 16, 32));
}

TEST(ReadDescription, PixelsAreWhole) {
  EXPECT_EQ(ErrorOf(R"({"head": {"kind": "grid", "strides": [8.5, 16]}})"),
            "head.strides is no whole number, expected whole pixels");
  EXPECT_EQ(ErrorOf(R"({"head": {"kind": "grid", "strides": 8.5}})"),
            "head.strides is no whole number, expected whole pixels");
  EXPECT_EQ(ErrorOf(R"({"input": {"size": [64, 64.5]}, "head": {"kind": "grid"}})"),
            "input.size is no whole number, expected height and width in whole pixels");
}

TEST(ReadDescription, OneNumberIsASquareOrAllChannels) {
  const ImageInput input =
      ReadDescription(R"({"input": {"size": 64, "scale": 1, "std": 255}, "head": {"kind": "depth"}})").input;
  EXPECT_EQ(input.height, 64);
  EXPECT_EQ(input.width, 64);
  EXPECT_THAT(input.std, ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace saccade::models
