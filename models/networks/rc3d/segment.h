// Segments of a clip and the heads' segment arithmetic, in fractional frames. Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>

namespace saccade::models {

// Start and end in frames; frame i lasts from i to i + 1.
struct Segment {
  float start = 0;
  float end = 0;

  float length() const { return end - start; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// Divisors of a segment's two offsets: centre, length.
using SegmentWeights = std::array<float, 2>;
inline constexpr SegmentWeights kProposalSegmentWeights = {1, 1};
inline constexpr SegmentWeights kActionSegmentWeights = {10, 5};

// Segments shorter than this after clipping are dropped.
inline constexpr float kMinSegmentFrames = 1;

// Returns the anchor of `steps_long` steps around the middle of a step of kStepFrames frames.
Segment Anchor(int64_t step, int64_t steps_long);

// Applies a head's two offsets to `segment`: the centre moves in units of the length, and the length is
// multiplied by a bounded power of e.
Segment Moved(const Segment& segment, const float* offsets, const SegmentWeights& weights);

// Returns the part of `segment` within a clip.
Segment Clipped(const Segment& segment, int64_t frames);

}  // namespace saccade::models
