#include "server/repository/promote_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxShownBytes = 40;

// A word of letters, digits and what numbers hold; or the operator; or any other single character.
struct Token {
  absl::string_view text;
  // Index of its first character.
  size_t at = 0;
};

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '+';
}

bool IsOperatorCharacter(char c) { return c == '<' || c == '>' || c == '='; }

class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) { Advance(); }

  const Token& token() const { return token_; }
  // Advances if the current token is `text`.
  bool Take(absl::string_view text) {
    if (token_.text != text) return false;
    Advance();
    return true;
  }
  void Advance() {
    while (next_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[next_]))) ++next_;
    token_ = {{}, next_};
    if (next_ == text_.size()) return;
    const auto run = [this](auto belongs) {
      size_t end = next_;
      while (end < text_.size() && belongs(text_[end])) ++end;
      return end - next_;
    };
    const size_t length = std::max<size_t>({run(IsWordCharacter), run(IsOperatorCharacter), 1});
    token_.text = text_.substr(next_, length);
    next_ += length;
  }
  absl::Status Expected(absl::string_view what) const {
    const std::string found =
        token_.text.empty() ? "the end"
                            : absl::StrCat("'", absl::CHexEscape(token_.text.substr(0, kMaxShownBytes)), "'");
    return absl::InvalidArgumentError(
        absl::StrCat("at character ", token_.at + 1, " expected ", what, ", found ", found));
  }

 private:
  const absl::string_view text_;
  size_t next_ = 0;
  // Empty at the end.
  Token token_;
};

// Only plain decimal numbers: no sign, no infinity, no hexadecimal digits.
std::optional<double> NumberIn(absl::string_view text) {
  const auto may_be = [](unsigned char c) { return absl::ascii_isdigit(c) || c == '.'; };
  double number = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), may_be) || !absl::SimpleAtod(text, &number) ||
      !std::isfinite(number))
    return std::nullopt;
  return number;
}

absl::StatusOr<PromoteRule::Condition> ReadCondition(Reader& reader) {
  const auto* const found =
      std::find_if(kShadowMeasures.begin(), kShadowMeasures.end(),
                   [&](const ShadowMeasureName& measure) { return measure.name == reader.token().text; });
  if (found == kShadowMeasures.end()) {
    const auto name = [](std::string* out, const ShadowMeasureName& measure) {
      absl::StrAppend(out, measure.name);
    };
    return reader.Expected(absl::StrCat("one of ", absl::StrJoin(kShadowMeasures, ", ", name)));
  }
  reader.Advance();
  PromoteRule::Condition condition = {.measure = static_cast<ShadowMeasure>(found - kShadowMeasures.begin())};
  if (!reader.Take(OperatorOf(condition))) {
    condition.or_equal = false;
    if (!reader.Take(OperatorOf(condition))) {
      return reader.Expected(found->high_is_good
                                 ? absl::StrCat("'>=' or '>', because a higher ", found->name, " is better")
                                 : absl::StrCat("'<=' or '<', because a lower ", found->name, " is better"));
    }
  }
  const auto bound = NumberIn(reader.token().text);
  if (!bound) return reader.Expected("a number such as 0.995");
  condition.bound = *bound;
  reader.Advance();
  return condition;
}

}  // namespace

absl::StatusOr<PromoteRule> ReadPromoteRule(absl::string_view text) {
  Reader reader(text);
  PromoteRule rule = {.text = std::string(absl::StripAsciiWhitespace(text))};
  do {
    if (rule.conditions.size() == kMaxPromoteConditions)
      return reader.Expected(
          absl::StrCat("'after': a rule has at most ", kMaxPromoteConditions, " conditions"));
    auto condition = ReadCondition(reader);
    if (!condition.ok()) return condition.status();
    rule.conditions.push_back(*condition);
  } while (reader.Take("and"));
  if (!reader.Take("after")) return reader.Expected("'and' or 'after'");
  const absl::string_view count = reader.token().text;
  const bool is_count =
      std::all_of(count.begin(), count.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  if (!is_count || !absl::SimpleAtoi(count, &rule.after) || rule.after < 1 || rule.after > kMaxPromoteAfter)
    return reader.Expected(absl::StrCat("a whole number of requests from 1 to ", kMaxPromoteAfter));
  reader.Advance();
  if (!reader.Take("requests")) return reader.Expected("'requests'");
  if (!reader.token().text.empty()) return reader.Expected("the end");
  return rule;
}

}  // namespace saccade::server
