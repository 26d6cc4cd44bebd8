#include "models/weights/format/json_reader.h"

#include <gtest/gtest.h>

#include "models/api/error.h"

namespace saccade::models {
namespace {

std::string String(const std::string& text) { return JsonReader(text).ReadString(); }
int64_t Number(const std::string& text) { return JsonReader(text).ReadUnsigned(); }

TEST(JsonReader, DecodesStrings) {
  EXPECT_EQ(String(R"( "a\"\\\/\b\f\n\r\té" )"), "a\"\\/\b\f\n\r\t\xC3\xA9");
  EXPECT_EQ(String(R"("\u00e9\u20AC\ud83d\ude00")"), "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(JsonReader, RefusesBadStrings) {
  for (const char* text : {R"("open)",
                           R"(open")",
                           R"("\x")",
                           R"("\u12")",
                           R"("\u12g4")",
                           R"("\ud800")",
                           R"("\ud800\u0041")",
                           R"("\ud800\ue000")",
                           R"("\u12 4")",
                           R"("\u12@4")",
                           R"("\udc00")",
                           "\"\n\"",
                           "\"\xC0\x80\"",
                           "\"\xE0\x9F\xBF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"",
                           "\"\x80\"",
                           "\"\xE2\x82\"",
                           "\"\\",
                           ""}) {
    EXPECT_THROW(String(text), LoadError) << text;
  }
}

TEST(JsonReader, ReadsWholeNumbersOnly) {
  EXPECT_EQ(Number("0"), 0);
  EXPECT_EQ(Number(" 9223372036854775807 "), INT64_MAX);
  for (const char* text :
       {"9223372036854775808", "99999999999999999999999", "-1", "+1", "1.0", "1e3", "01", "", "x"}) {
    EXPECT_THROW(Number(text), LoadError) << text;
  }
}

TEST(JsonReader, ReadsNumbersAsJsonHasThem) {
  const auto number = [](const std::string& text) {
    JsonReader json(text);
    const double value = json.ReadNumber();
    json.ExpectEnd();
    return value;
  };
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("-1.50"), -1.5);
  EXPECT_EQ(number("1e5"), 1e5);
  EXPECT_EQ(number("1.0E+2"), 100);
  for (const char* text :
       {"1.", "-1.", "1.e5", "1.E-5", ".5", "+1", "01", "-", "1e", "1.5.", "inf", "nan", "1e999", ""})
    EXPECT_THROW(number(text), LoadError) << text;
}

TEST(JsonReader, TellsWhereAndWhat) {
  JsonReader json("{ x");
  json.Expect('{');
  try {
    json.Expect('"');
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_STREQ(error.what(), "JSON at byte 2: expected '\"', got 'x'");
  }
  EXPECT_FALSE(json.Accept('}'));
  EXPECT_THROW(json.ExpectEnd(), LoadError);
}

}  // namespace
}  // namespace saccade::models
