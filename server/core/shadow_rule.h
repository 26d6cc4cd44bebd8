// Which requests of a model are computed by another version of it too.
#pragma once

#include <cstdint>
#include <optional>

#include "server/core/promote_rule.h"
#include "server/core/promotion.h"

namespace saccade::server {

struct ShadowRule {
  // The version that computes the copies. It answers only requests that name it.
  int64_t version = 0;
  // Share of the answered requests that are copied, above 0 and at most 1.
  double share = 0;
  // The largest difference of answers that agree, by the measure of the model's task. Unset: the task's own.
  std::optional<double> tolerance = std::nullopt;
  // Unset: the shadow version never takes the other's place by itself.
  std::optional<PromoteRule> promote = std::nullopt;
  // What was decided about the same files earlier, if it was not to promote.
  std::optional<GateDecision> decided = std::nullopt;
};

}  // namespace saccade::server
