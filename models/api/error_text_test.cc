#include "models/api/error_text.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "models/api/text.h"

namespace saccade::models {
namespace {

TEST(ErrorTextTest, LeavesOutTheStackOfLibTorchsErrors) {
  try {
    TORCH_CHECK(false, "no kernel image is available");
  } catch (const std::exception& error) {
    ASSERT_THAT(error.what(), testing::HasSubstr("Exception raised from"));
    EXPECT_EQ(ErrorText(error), "no kernel image is available");
  }
}

TEST(ErrorTextTest, IsShortUtf8WithoutTrailingSpace) {
  EXPECT_EQ(ErrorText(std::runtime_error("no \xe9 here \n")), "no ? here");
  const std::string text =
      ErrorText(std::runtime_error(std::string(1999, '.') + "\xc3\xbc" + std::string(9, '.')));
  EXPECT_EQ(text.size(), 2004u);
  EXPECT_TRUE(IsUtf8(text));
}

}  // namespace
}  // namespace saccade::models
