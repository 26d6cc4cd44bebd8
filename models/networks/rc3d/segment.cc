#include "models/networks/rc3d/segment.h"

#include <algorithm>

#include "models/networks/growth.h"
#include "models/networks/rc3d/table.h"

namespace saccade::models {

Segment Anchor(int64_t step, int64_t steps_long) {
  const auto frames = static_cast<float>(kStepFrames);
  const float centre = (static_cast<float>(step) + 0.5F) * frames;
  const float half = 0.5F * frames * static_cast<float>(steps_long);
  return {centre - half, centre + half};
}

Segment Moved(const Segment& segment, const float* offsets, const SegmentWeights& weights) {
  const float length = segment.length();
  const float centre = offsets[0] / weights[0] * length + (segment.start + 0.5F * length);
  const float half = 0.5F * (Growth(offsets[1] / weights[1]) * length);
  return {centre - half, centre + half};
}

Segment Clipped(const Segment& segment, int64_t frames) {
  const auto end = static_cast<float>(frames);
  return {std::clamp(segment.start, 0.0F, end), std::clamp(segment.end, 0.0F, end)};
}

}  // namespace saccade::models
