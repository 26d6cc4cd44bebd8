// Decides whether a shadow version takes the place of the version that it is compared with.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/core/promote_rule.h"
#include "server/core/promotion.h"

namespace saccade::server {

// How many passes must have been timed before a rule can be decided: none unless it names p50 or p99.
int64_t TimedFor(const PromoteRule& rule);

// Whether so many compared requests and timed passes are enough for the decision.
bool IsDue(const PromoteRule& rule, int64_t compared, int64_t timed);

// "compared 120 of 1000, timed 15 of 100 passes": what a rule that is not decided waits for.
std::string ProgressOf(const PromoteRule& rule, int64_t compared, int64_t timed);

GateDecision Decide(const PromoteRule& rule, const GateMeasures& measures, absl::Time now);

}  // namespace saccade::server
