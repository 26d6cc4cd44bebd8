// Segments of a clip as the heads compute with them: real numbers of frames. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>

namespace saccade::models {

// From the beginning of one moment to the end of another: frame i lasts from i to i + 1.
struct Segment {
  float start = 0;
  float end = 0;

  float length() const { return end - start; }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// What the two numbers that move a segment are divided by: centre, length.
using SegmentWeights = std::array<float, 2>;
inline constexpr SegmentWeights kProposalSegmentWeights = {1, 1};
inline constexpr SegmentWeights kActionSegmentWeights = {10, 5};

// Shorter ones, once they are clipped, are nothing that could be seen.
inline constexpr float kLeastFrames = 1;

// Around the middle of a step of kStepFrames frames, as many steps long.
Segment Anchor(int64_t step, int64_t steps_long);

// `segment` moved by a head's two numbers: the centre by shares of its length, the length by a power of e,
// which is bounded.
Segment Moved(const Segment& segment, const float* offsets, const SegmentWeights& weights);

// The part of it within a clip.
Segment Clipped(const Segment& segment, int64_t frames);

}  // namespace saccade::models
