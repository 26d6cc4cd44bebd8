// A decision about a shadow version.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/core/promote_rule.h"

namespace saccade::server {

struct GateMeasures {
  int64_t compared = 0;
  // Passes that were timed. Without any, p50 and p99 are not known.
  int64_t timed = 0;
  // By ShadowMeasure. Infinite if answers cannot be measured, such as maps of different sizes or an error.
  std::array<double, kShadowMeasures.size()> values = {};
};

struct GateDecision {
  bool promoted = false;
  absl::Time at = absl::UnixEpoch();
  // "agreement is 0.91, expected >= 0.995; ..." with the conditions that do not hold; for a promotion, with
  // all measures that the rule names.
  std::string reason = {};
  GateMeasures measures = {};
};

// The decision about the shadow version of a model.
struct Promotion {
  // PromoteRule::text.
  std::string rule = {};
  // The version that the shadow version was compared with.
  int64_t replaces = 0;
  int64_t shadow = 0;
  GateDecision decision = {};
};

// The state of a rule for promotions, as a description of the model shows it.
struct PromotionState {
  // PromoteRule::text.
  std::string rule = {};
  // The version that the shadow version is compared with.
  int64_t replaces = 0;
  int64_t shadow = 0;
  // Nullopt until it is decided.
  std::optional<bool> promoted = std::nullopt;
  // GateDecision::reason, or how far the comparison is: "compared 120 of 1000, timed 15 of 100 passes".
  std::string reason = {};
};

}  // namespace saccade::server
