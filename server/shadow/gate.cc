#include "server/shadow/gate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

// With fewer timed passes, the 99th percentile would be the slowest pass.
constexpr int64_t kMinTimed = 100;

bool Holds(const PromoteRule::Condition& condition, double value) {
  const bool high = kShadowMeasures.at(static_cast<size_t>(condition.measure)).high_is_good;
  if (condition.or_equal && value == condition.bound) return true;
  // Both are false for NaN.
  return high ? value > condition.bound : value < condition.bound;
}

// Ten significant digits, so that 0.9949999, which misses a bound of 0.995, is not shown as 0.995.
std::string TextOf(double value) { return absl::StrFormat("%.10g", value); }

}  // namespace

int64_t TimedFor(const PromoteRule& rule) {
  const bool names_time = std::any_of(
      rule.conditions.begin(), rule.conditions.end(), [](const PromoteRule::Condition& condition) {
        return condition.measure == ShadowMeasure::kP50 || condition.measure == ShadowMeasure::kP99;
      });
  return names_time ? std::min(kMinTimed, rule.after) : 0;
}

bool IsDue(const PromoteRule& rule, int64_t compared, int64_t timed) {
  return compared >= rule.after && timed >= TimedFor(rule);
}

std::string ProgressOf(const PromoteRule& rule, int64_t compared, int64_t timed) {
  std::string text = absl::StrCat("compared ", compared, " of ", rule.after);
  if (const int64_t of = TimedFor(rule); of > 0)
    absl::StrAppend(&text, ", timed ", timed, " of ", of, " passes");
  return text;
}

GateDecision Decide(const PromoteRule& rule, const GateMeasures& measures, absl::Time now) {
  std::vector<std::string> held;
  std::vector<std::string> missed;
  for (const PromoteRule::Condition& condition : rule.conditions) {
    const auto measure = static_cast<size_t>(condition.measure);
    const double value = measures.values.at(measure);
    const std::string is = absl::StrCat(kShadowMeasures.at(measure).name, " is ", TextOf(value));
    if (Holds(condition, value)) {
      held.push_back(is);
    } else {
      missed.push_back(absl::StrCat(is, ", expected ", OperatorOf(condition), " ", TextOf(condition.bound)));
    }
  }
  return {.promoted = missed.empty(),
          .at = now,
          .reason = absl::StrJoin(missed.empty() ? held : missed, "; "),
          .measures = measures};
}

}  // namespace saccade::server
