#include "models/api/text.h"

#include <gtest/gtest.h>

namespace saccade::models {
namespace {

TEST(Utf8Test, AcceptsWellFormedText) {
  for (const char* text :
       {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xE4\xBA\xBA", "\xF0\x9F\x90\xB1", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
}

TEST(Utf8Test, RejectsMalformedText) {
  // Latin-1, truncated, overlong (twice), surrogate, beyond U+10FFFF, a five-byte form, a stray continuation
  // byte.
  for (const char* text : {"gr\xFC\xDF", "\xE4\xBA", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(NearestWordTest, FindsWhatWasMistyped) {
  const std::vector<std::string> flags = {"--model", "--mode", "--output", "--top-k"};
  EXPECT_EQ(NearestWord("--modle", flags), "--model");
  EXPECT_EQ(NearestWord("--ouput", flags), "--output");
  EXPECT_EQ(NearestWord("--topk", flags), "--top-k");
  EXPECT_EQ(NearestWord("--colour", flags), "");
  EXPECT_EQ(NearestWord("--modl", flags), "--mode");
  const std::vector<std::string> host = {"--host"};
  EXPECT_EQ(NearestWord("--modl", host), "");
  EXPECT_EQ(NearestWord("", flags), "");
  EXPECT_EQ(NearestWord("x", flags), "");
  EXPECT_EQ(NearestWord(std::string(1000, 'm'), flags), "");
}

TEST(Utf8Test, MeasuresTheFirstCharacter) {
  EXPECT_EQ(Utf8CharacterBytes("a\xFF"), 1U);
  EXPECT_EQ(Utf8CharacterBytes("\xC3\xBC\xFF"), 2U);
  EXPECT_EQ(Utf8CharacterBytes("\xE4\xBA\xBA"
                               "a"),
            3U);
  EXPECT_EQ(Utf8CharacterBytes("\xF0\x9F\x90\xB1"), 4U);
  EXPECT_EQ(Utf8CharacterBytes("\xE4\xBA"), 0U);
}

}  // namespace
}  // namespace saccade::models
