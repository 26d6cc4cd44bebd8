#include "server/core/flag_value.h"

#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

// The largest value of a type is not a limit that anybody set, and the least above 0 stands for 0.
constexpr double kNoLimit = 1e18;
constexpr double kTiny = 1e-300;

// The two parts of a text that a separator divides.
struct Halves {
  absl::string_view before, after;
};

// At the separator's first occurrence, or its last.
std::optional<Halves> Split(absl::string_view text, absl::string_view separator, bool last = false) {
  const size_t at = last ? text.rfind(separator) : text.find(separator);
  if (at == absl::string_view::npos) return std::nullopt;
  return Halves{text.substr(0, at), text.substr(at + separator.size())};
}

std::string Wrong(absl::string_view flag, absl::string_view value, absl::string_view expected) {
  return absl::StrCat(flag, " is '", value, "'; expected ", expected);
}

// "0.500000" becomes "0.5".
absl::string_view WithoutZeros(absl::string_view number) {
  if (!absl::StrContains(number, ".")) return number;
  while (absl::ConsumeSuffix(&number, "0")) {
  }
  absl::ConsumeSuffix(&number, ".");
  return number;
}

std::string RangeText(absl::string_view value, absl::string_view low, absl::string_view high) {
  double number = 0, least = 0, most = 0;
  if (absl::SimpleAtod(high, &most) && most < kNoLimit)
    return absl::StrCat("a number from ", WithoutZeros(low), " to ", WithoutZeros(high));
  // Some versions of CLI11 print the least number above 0 as 0.
  const bool is_number = absl::SimpleAtod(value, &number), is_limit = absl::SimpleAtod(low, &least);
  if (is_limit && ((least > 0 && least < kTiny) || (is_number && number == least && least == 0)))
    return "a number above 0";
  return absl::StrCat("a number of at least ", WithoutZeros(low));
}

// `list` separates the words by commas; "WORD->NUMBER" is a word and what it stands for.
std::string WordsText(absl::string_view list) {
  std::vector<absl::string_view> words = absl::StrSplit(list, ',');
  for (absl::string_view& word : words) word = word.substr(0, word.find("->"));
  if (words.size() == 1) return std::string(words.front());
  const absl::string_view last = words.back();
  words.pop_back();
  return absl::StrCat(absl::StrJoin(words, ", "), " or ", last);
}

// "FLAG: Value VALUE not in range LOW to HIGH", or "[LOW - HIGH]" as newer versions of CLI11 write it.
std::optional<std::string> OutOfRange(absl::string_view text) {
  const auto flag = Split(text, ": Value ");
  if (!flag) return std::nullopt;
  const auto value = Split(flag->after, " not in range ", true);
  if (!value) return std::nullopt;
  absl::string_view range = value->after;
  const bool in_brackets = absl::ConsumePrefix(&range, "[") && absl::ConsumeSuffix(&range, "]");
  const auto limits = Split(range, in_brackets ? " - " : " to ");
  if (!limits) return std::nullopt;
  return Wrong(flag->before, value->before, RangeText(value->before, limits->before, limits->after));
}

// "FLAG: Check VALUE value in {WORD->NUMBER,...} OR {NUMBER,...} FAILED", or "FLAG: VALUE not in {WORD,...}".
std::optional<std::string> NoSuchWord(absl::string_view text) {
  const auto checked = Split(text, ": Check ");
  const auto flag = checked ? checked : Split(text, ": ");
  if (!flag) return std::nullopt;
  const auto value = Split(flag->after, checked ? " value in {" : " not in {", true);
  if (!value) return std::nullopt;
  const auto words = Split(value->after, "}");
  if (!words) return std::nullopt;
  return Wrong(flag->before, value->before, WordsText(words->before));
}

// "Could not convert: FLAG = VALUE": numbers and words have checks that speak first, so that this is a
// switch.
std::optional<std::string> NoSwitch(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "Could not convert: ")) return std::nullopt;
  const auto flag = Split(text, " = ");
  if (!flag) return std::nullopt;
  return Wrong(flag->before, flag->after, "true or false");
}

// "FLAG: At Most 1 required but received TIMES"
std::optional<std::string> Repeated(absl::string_view text) {
  const auto flag = Split(text, ": At Most 1 required but received ");
  if (!flag) return std::nullopt;
  return absl::StrCat(flag->before, " is given ", flag->after, " times; expected it once");
}

}  // namespace

std::string FlagValueText(absl::string_view text) {
  for (const auto read : {OutOfRange, NoSuchWord, NoSwitch, Repeated}) {
    if (const auto said = read(text)) return *said;
  }
  return std::string(text);
}

}  // namespace saccade::server
