#include "models/networks/rc3d/segment.h"

#include <algorithm>
#include <cmath>

#include "models/networks/rc3d/table.h"

namespace saccade::models {

Segment Anchor(int64_t step, int64_t steps_long) {
  const auto frames = static_cast<float>(kStepFrames);
  const float centre = (static_cast<float>(step) + 0.5F) * frames;
  const float half = 0.5F * frames * static_cast<float>(steps_long);
  return {centre - half, centre + half};
}

Segment Moved(const Segment& segment, const float* offsets, const SegmentWeights& weights) {
  // As in the detectors, larger growth is an artefact and would overflow.
  static const auto kMaxGrowth = static_cast<float>(std::log(1000.0 / 16));
  const float length = segment.length();
  const float centre = offsets[0] / weights[0] * length + (segment.start + 0.5F * length);
  const float half = 0.5F * (std::exp(std::min(offsets[1] / weights[1], kMaxGrowth)) * length);
  return {centre - half, centre + half};
}

Segment Clipped(const Segment& segment, int64_t frames) {
  const auto end = static_cast<float>(frames);
  return {std::clamp(segment.start, 0.0F, end), std::clamp(segment.end, 0.0F, end)};
}

}  // namespace saccade::models
