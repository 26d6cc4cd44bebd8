// When a shadow version takes the place of the version that it is compared with.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace saccade::server {

// The numbers by which a shadow version is judged after some requests were compared.
enum class ShadowMeasure {
  // Share of the compared requests whose answers agree, and share of those that are equal bit for bit.
  kAgreement,
  kEquality,
  // Mean and largest of the differences by the task's measure.
  kMeanDifference,
  kLargestDifference,
  // Quantiles of the times of the shadow version's passes, over the same of the version it is compared with.
  kP50,
  kP99,
};

struct ShadowMeasureName {
  absl::string_view name;
  // Whether a higher value is better: then a condition is a lower bound, and otherwise an upper one.
  bool high_is_good;
};

// By ShadowMeasure.
inline constexpr std::array<ShadowMeasureName, 6> kShadowMeasures = {{{"agreement", true},
                                                                      {"equality", true},
                                                                      {"mean_difference", false},
                                                                      {"largest_difference", false},
                                                                      {"p50", false},
                                                                      {"p99", false}}};

// The label that a promotion moves.
inline constexpr absl::string_view kStableLabel = "stable";

struct PromoteRule {
  // Holds if the measure is beyond the bound, to the side that is better for it.
  struct Condition {
    ShadowMeasure measure;
    // Whether a measure that equals the bound holds: `>=` and `<=`, but not `>` and `<`.
    bool or_equal = true;
    double bound = 0;
  };
  // All must hold. At least one.
  std::vector<Condition> conditions = {};
  // How many requests are compared before the decision.
  int64_t after = 0;
  // As it is written in the configuration.
  std::string text = {};
  // The version that the shadow version would replace: that of the label `stable`, or else the highest other.
  int64_t replaces = 0;
};

// ">=" and so on.
inline absl::string_view OperatorOf(const PromoteRule::Condition& condition) {
  const bool high = kShadowMeasures.at(static_cast<size_t>(condition.measure)).high_is_good;
  if (high) return condition.or_equal ? ">=" : ">";
  return condition.or_equal ? "<=" : "<";
}

}  // namespace saccade::server
