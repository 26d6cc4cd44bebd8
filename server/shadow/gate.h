// Decides whether a shadow version takes the place of the version that it is compared with.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "server/core/promote_rule.h"
#include "server/core/promotion.h"

namespace saccade::server {

// How many of the compared requests must have been timed before a rule can be decided: none unless it names
// p50 or p99.
int64_t TimedFor(const PromoteRule& rule);

// Whether so many requests are enough for the decision.
bool IsDue(const PromoteRule& rule, int64_t compared, int64_t timed);

GateDecision Decide(const PromoteRule& rule, const GateMeasures& measures, absl::Time now);

}  // namespace saccade::server
