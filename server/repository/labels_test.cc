#include "server/repository/labels.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseLabels(text, "m/labels.txt").status().message());
}

TEST(LabelsTest, OneALine) {
  EXPECT_THAT(*ParseLabels("cat\nbig dog\n", "f"), ElementsAre("cat", "big dog"));
  EXPECT_THAT(*ParseLabels("cat\r\ndog", "f"), ElementsAre("cat", "dog"));
  EXPECT_THAT(*ParseLabels("\xEF\xBB\xBF"
                           "cat\n\n",
                           "f"),
              ElementsAre("cat"));
  EXPECT_THAT(*ParseLabels("", "f"), IsEmpty());
}

TEST(LabelsTest, AnEmptyLineIsAClassWithoutAName) {
  EXPECT_THAT(*ParseLabels("cat\n\ndog\n", "f"), ElementsAre("cat", "", "dog"));
}

TEST(LabelsTest, ControlCharactersAreRefused) {
  EXPECT_THAT(ErrorOf("cat\nd\x1B[31mog\n"), HasSubstr("line 2 holds a control character"));
}

TEST(LabelsTest, LengthAndCountAreBounded) {
  EXPECT_TRUE(ParseLabels(std::string(256, 'x'), "f").ok());
  EXPECT_THAT(ErrorOf(std::string(257, 'x')), HasSubstr("line 1 has 257 bytes, expected at most 256"));
  std::string many;
  for (int i = 0; i < 65'536; ++i) many += "x\n";
  EXPECT_EQ(ParseLabels(many, "f")->size(), 65'536u);
  EXPECT_THAT(ErrorOf(many + "x\n"), HasSubstr("has more than the maximum of 65536 labels"));
}

}  // namespace
}  // namespace saccade::server
