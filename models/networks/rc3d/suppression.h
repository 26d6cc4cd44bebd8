// Non-maximum suppression of segments.
#pragma once

#include <cstdint>
#include <vector>

#include "models/networks/rc3d/segment.h"

namespace saccade::models {

// Segments with their scores and labels.
struct Scored {
  std::vector<Segment> segments;
  std::vector<float> scores;
  std::vector<int64_t> labels;

  void Add(const Segment& segment, float score, int64_t label);
};

// Returns at most `max` segments by descending score, equal ones in order, without those whose overlap
// (intersection over union) with a better one of their label is above `threshold`. REQUIRES: finite numbers.
Scored Suppressed(const Scored& all, double threshold, int64_t max);

}  // namespace saccade::models
