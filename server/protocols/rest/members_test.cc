#include "server/protocols/rest/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Why(const absl::StatusOr<RestParameters>& parsed) {
  if (parsed.ok()) return "it was taken";
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(RestMembers, ValuesAreWhatTheyAre) {
  const auto parsed = ParseMembers(R"({"a": true, "b": -1, "c": 18446744073709551615, "d": 0.5, "e": "x"})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed, ElementsAre(Pair("a", RestValue(true)), Pair("b", RestValue(int64_t{-1})),
                                   Pair("c", RestValue(~uint64_t{0})), Pair("d", RestValue(0.5)),
                                   Pair("e", RestValue(std::string("x")))));
  const NamedParameters named = Named(*parsed);
  ASSERT_EQ(named.size(), 5u);
  EXPECT_EQ(named[4].first, "e");
  EXPECT_EQ(named[4].second, Parameter(std::string_view("x")));
}

TEST(RestMembers, NothingAndAnEmptyObjectHaveNone) {
  EXPECT_THAT(*ParseMembers(""), IsEmpty());
  EXPECT_THAT(*ParseMembers("{}"), IsEmpty());
  EXPECT_THAT(*ParseParameters(""), IsEmpty());
  EXPECT_THAT(*ParseParameters("{}"), IsEmpty());
}

TEST(RestMembers, ParametersStandInAnObjectOfTheirOwn) {
  const auto parsed = ParseParameters(
      R"({"x": [{"parameters": {"a": 1}}], "y": {"parameters": {"b": [2]}}, "z": null,
          "parameters": {"config": "{}"}, "w": {"c": 1}, "v": 3})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed, ElementsAre(Pair("config", RestValue(std::string("{}")))));
}

TEST(RestMembers, OneMemberMayBeAnObject) {
  const std::string text = R"({"raw_handle": {"b64": "AAAA"}, "byte_size": 4})";
  EXPECT_THAT(*ParseMembers(text, "raw_handle"), ElementsAre(Pair("byte_size", RestValue(uint64_t{4}))));
  EXPECT_THAT(*ParseMembersOf("raw_handle", text), ElementsAre(Pair("b64", RestValue(std::string("AAAA")))));
  EXPECT_THAT(Why(ParseMembers(text)), HasSubstr("'raw_handle': expected"));
  EXPECT_THAT(Why(ParseMembers(text, "byte_size")), HasSubstr("'raw_handle': expected"));
  EXPECT_THAT(Why(ParseMembersOf("byte_size", text)), HasSubstr("'byte_size': expected an object"));
  EXPECT_THAT(*ParseMembers(R"({"": 1})"), ElementsAre(Pair("", RestValue(uint64_t{1}))));
}

TEST(RestMembers, WhatIsWrongIsNamed) {
  EXPECT_THAT(Why(ParseMembers("[]")), HasSubstr("expected an object, got an array"));
  EXPECT_THAT(Why(ParseMembers("1")), HasSubstr("expected an object, got a number"));
  EXPECT_THAT(Why(ParseMembers("{")), HasSubstr("not valid JSON"));
  EXPECT_THAT(Why(ParseMembers("{} x")), HasSubstr("not valid JSON"));
  EXPECT_THAT(Why(ParseMembers(R"({"a": {}})")),
              HasSubstr("'a': expected a string, a number, true or false"));
  EXPECT_THAT(Why(ParseMembers(R"({"a": [1]})")), HasSubstr("got an array"));
  EXPECT_THAT(Why(ParseMembers(R"({"a": null})")), HasSubstr("got null"));
  EXPECT_THAT(Why(ParseParameters(R"({"parameters": 1})")), HasSubstr("'parameters': expected an object"));
  EXPECT_THAT(Why(ParseParameters(R"({"parameters": []})")), HasSubstr("got an array"));
  EXPECT_THAT(Why(ParseParameters(R"({"parameters": {"a": {}}})")), HasSubstr("'a'"));
}

TEST(RestMembers, TheyAreBounded) {
  std::string many = "{";
  for (int i = 0; i < 257; ++i) absl::StrAppend(&many, i > 0 ? "," : "", "\"", i, "\":1");
  EXPECT_THAT(Why(ParseMembers(many + "}")), HasSubstr("more than 256 members"));
  const std::string deep = absl::StrCat("{\"a\":", std::string(60'000, '['), std::string(60'000, ']'), "}");
  EXPECT_THAT(*ParseParameters(deep), IsEmpty());
  // 4 MiB of members that nobody reads would take 0.1 s.
  std::string ignored, repeated;
  for (int i = 0; i < 66'000; ++i) absl::StrAppend(&ignored, i > 0 ? "," : "", "{}");
  EXPECT_THAT(Why(ParseParameters(absl::StrCat(R"({"other":[)", ignored, "]}"))),
              HasSubstr("more than 65536 values and names"));
  for (int i = 0; i < 33'000; ++i) absl::StrAppend(&repeated, i > 0 ? "," : "", R"("parameters":{})");
  EXPECT_THAT(Why(ParseParameters(absl::StrCat("{", repeated, "}"))),
              HasSubstr("more than 65536 values and names"));
  const std::string long_text = "{\"config\":\"" + std::string(4 << 20, 'x') + "\"}";
  EXPECT_THAT(Why(ParseParameters(long_text)), HasSubstr("more than the 4194304 that are allowed"));
}

}  // namespace
}  // namespace saccade::server
