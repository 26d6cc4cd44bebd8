// The parameter `promote` of a model: "agreement >= 0.995 and p99 <= 1.1 after 1000 requests".
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/promote_rule.h"

namespace saccade::server {

inline constexpr int64_t kMaxPromoteConditions = 16;
// Requests after which the decision is made.
inline constexpr int64_t kMaxPromoteAfter = 1'000'000;

// Reads a rule by this grammar, with blanks between the words wherever one likes:
//
//   rule      := condition { "and" condition } "after" count "requests"
//   condition := "agreement"       ( ">=" | ">" ) number
//              | "equality"        ( ">=" | ">" ) number
//              | "mean_difference" ( "<=" | "<" ) number     and so on, see kShadowMeasures
//
// INVALID_ARGUMENT names the position of what is wrong, counted from 1, and what was expected there.
absl::StatusOr<PromoteRule> ReadPromoteRule(absl::string_view text);

}  // namespace saccade::server
