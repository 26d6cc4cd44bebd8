#include "server/core/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace saccade::server {
namespace {

size_t BytesIn(const std::string& text) {
  const auto extent = MeasureJson(text);
  EXPECT_TRUE(extent.ok()) << text.substr(0, 60);
  return extent.ok() ? extent->string_bytes : 0;
}

TEST(JsonTextTest, StringsAreCountedAsTheyAreWritten) {
  EXPECT_EQ(BytesIn(""), 0u);
  EXPECT_EQ(BytesIn("[1,2]"), 0u);
  EXPECT_EQ(BytesIn(R"({"ab":"cde"})"), 5u);
  EXPECT_EQ(BytesIn(R"(["a\"b","c\\","\\\"",""])"), 4u + 3u + 4u);
  EXPECT_EQ(BytesIn(R"(["does not end)"), 12u);
  EXPECT_EQ(BytesIn(R"(["nor does this\")"), 15u);
  EXPECT_EQ(MeasureJson(R"({"a":["","",1]})")->strings, 3u);
}

TEST(JsonTextTest, NumbersOfSenselessLengthAreRefused) {
  const std::string digits(2 * kMaxJsonNumber, '7');
  EXPECT_EQ(MeasureJson("[" + digits + "]").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MeasureJson("[\"a\",0." + digits).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(MeasureJson("[" + digits.substr(0, kMaxJsonNumber - 1) + "]").ok());
  EXPECT_TRUE(MeasureJson("[" + digits.substr(2) + "]").ok()) << "it fills no block";
  EXPECT_EQ(BytesIn("[\"" + digits + "\"]"), digits.size()) << "a string may be long";
  std::string many = "[0";
  for (int i = 0; i < 10000; ++i) many += ",-1.5e-3";
  EXPECT_EQ(BytesIn(many + "]"), 0u);
}

TEST(JsonTextTest, LongStretchesWithoutValuesAreFound) {
  constexpr size_t kLong = 1'000'000;
  const auto structure = [](const std::string& text) { return MeasureJson(text)->structure_bytes; };
  EXPECT_GE(structure("[1," + std::string(kLong, ' ') + "2]"), kLong - 2 * kMaxJsonNumber);
  EXPECT_GE(structure("\"a\"" + std::string(kLong, '[') + "2]"), kLong - 2 * kMaxJsonNumber);
  EXPECT_EQ(structure("{\"a\":    [1,\n   2]}"), 0u);
  EXPECT_EQ(structure("\"" + std::string(kLong, ' ') + "\""), 0u) << "a string is counted as such";
}

TEST(JsonTextTest, NoValueAndNoNameIsMissed) {
  EXPECT_GE(MaxJsonValuesIn("1"), 1u);
  EXPECT_GE(MaxJsonValuesIn("[1,2,[],{}]"), 5u);
  EXPECT_GE(MaxJsonValuesIn(R"({"a":1,"b":[{}]})"), 6u);
  for (const char c : {',', ':', '[', '{'}) EXPECT_EQ(MaxJsonValuesIn(std::string(1001, c)), 1002u);
}

TEST(JsonTextTest, TooManyValuesAreRefused) {
  std::string text = "[{}";
  for (size_t i = 0; i < kMaxJsonValues / 4; ++i) text += ",{}";
  EXPECT_TRUE(CheckJsonValues(MaxJsonValuesIn(text + "]")).ok());
  for (size_t i = 0; i < kMaxJsonValues; ++i) text += ",{}";
  EXPECT_EQ(CheckJsonValues(MaxJsonValuesIn(text + "]")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MaxJsonValuesIn("\"" + std::string(8'000'000, 'A') + "\""), 1u) << "one large picture";
}

}  // namespace
}  // namespace saccade::server
