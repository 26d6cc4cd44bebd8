// How often the values of each feature, and the classes, occurred.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "server/drift/drift_sample.h"

namespace saccade::server {

// Classes beyond this number are counted together, as kOtherClasses.
inline constexpr size_t kMaxDriftClasses = 4096;
inline constexpr int64_t kOtherClasses = -1;

// Items seen, by feature and by class. Not thread-safe.
struct Distribution {
  int64_t items = 0;
  std::array<std::array<double, kDriftBins>, kFeatures> bins = {};
  std::map<int64_t, double> classes = {};

  void Add(const DriftSample& sample);
  void Add(const Distribution& other);
};

// The population stability index of a feature: the sum over its bins of (now - then) * ln(now / then), where
// both are shares. 0 if nothing has changed; below 0.1 is usual, above 0.25 is a change. nullopt if one of
// the two has no value of the feature.
std::optional<double> DriftOf(Feature feature, const Distribution& then, const Distribution& now);

// The same for the classes: the 15 most frequent ones of `then`, and all others together.
std::optional<double> DriftOfClasses(const Distribution& then, const Distribution& now);

}  // namespace saccade::server
