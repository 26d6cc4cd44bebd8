#include "server/core/flag_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace saccade::server {
namespace {

// CLI11's texts, as they are.
TEST(FlagValueText, SaysWhatWasExpected) {
  EXPECT_EQ(FlagValueText("--top-k: Value 0 not in range 1 to 1000"),
            "--top-k is '0'; expected a number from 1 to 1000");
  EXPECT_EQ(FlagValueText("--timeout: Value x not in range 0.001000 to 86400.000000"),
            "--timeout is 'x'; expected a number from 0.001 to 86400");
  EXPECT_EQ(FlagValueText("--a: Value 9 not in range [-1 - 1]"),
            "--a is '9'; expected a number from -1 to 1");
  EXPECT_EQ(FlagValueText("--a: Value -1 not in range 0 to 100"),
            "--a is '-1'; expected a number from 0 to 100");
  EXPECT_EQ(FlagValueText("--format: xml not in {text,json}"), "--format is 'xml'; expected text or json");
  EXPECT_EQ(FlagValueText("--decode: Check foo value in {process->0,thread->1} OR {0,1} FAILED"),
            "--decode is 'foo'; expected process or thread");
  EXPECT_EQ(FlagValueText("--log-format: Check x value in {ISO8601->0,json->1,text->0} OR {0,1,0} FAILED"),
            "--log-format is 'x'; expected ISO8601, json or text");
  EXPECT_EQ(FlagValueText("Could not convert: --insecure = maybe"),
            "--insecure is 'maybe'; expected true or false");
  EXPECT_EQ(FlagValueText("--model: At Most 1 required but received 2"),
            "--model is given 2 times; expected it once");
}

TEST(FlagValueText, TheLargestValueOfATypeIsNoLimit) {
  const std::string largest = std::to_string(std::numeric_limits<double>::max());
  EXPECT_EQ(FlagValueText("--seed: Value -1 not in range 0.000000 to " + largest),
            "--seed is '-1'; expected a number of at least 0");
  EXPECT_EQ(FlagValueText("--rate: Value x not in range [2.22507e-308 - 1.79769e+308]"),
            "--rate is 'x'; expected a number above 0");
  // CLI11 prints the least positive number as zero.
  EXPECT_EQ(FlagValueText("--rate: Value 0 not in range 0.000000 to " + largest),
            "--rate is '0'; expected a number above 0");
}

TEST(FlagValueText, ValuesMayHoldAnyText) {
  EXPECT_EQ(FlagValueText("--a: Value 1 not in range 2 to 3 not in range 4 to 5"),
            "--a is '1 not in range 2 to 3'; expected a number from 4 to 5");
  EXPECT_EQ(FlagValueText("--a:  not in {x}"), "--a is ''; expected x");
}

TEST(FlagValueText, OtherTextsStay) {
  for (const char* text :
       {"", "--a requires --b", "--a: is 'x', which is no folder", "--a: Value 1 not in range 2",
        "--a: x not in {y", "Could not convert: --a", "Could not convert: "})
    EXPECT_EQ(FlagValueText(text), text);
}

}  // namespace
}  // namespace saccade::server
