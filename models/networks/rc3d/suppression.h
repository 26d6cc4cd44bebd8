// Of segments that say the same, the best.
#pragma once

#include <cstdint>
#include <vector>

#include "models/networks/rc3d/segment.h"

namespace saccade::models {

// Segments with what they are chosen by.
struct Scored {
  std::vector<Segment> segments;
  std::vector<float> scores;
  std::vector<int64_t> labels;

  void Add(const Segment& segment, float score, int64_t label);
};

// By descending score, and among equals in order, at most `most`: without those whose overlap with a better
// one of their label (intersection over union) is above `threshold`. REQUIRES: finite numbers.
Scored Suppressed(const Scored& all, double threshold, int64_t most);

}  // namespace saccade::models
