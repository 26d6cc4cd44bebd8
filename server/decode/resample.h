// Scales, crops and normalises in one pass, with the triangle or the cubic filter of Pillow and of
// torchvision's antialias=True, or with plain bilinear interpolation. OpenCV has no such filter: its
// INTER_LINEAR aliases when shrinking, and its INTER_AREA is a box filter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace saccade::server {

// 8-bit pixels of three interleaved channels. `row_bytes` is the distance between rows. Does not own the
// pixels.
struct SourcePixels {
  const uint8_t* data = nullptr;
  size_t row_bytes = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// Maps one side of the output to the source: the source is scaled to `resized` samples, of which the output
// takes `length`, starting at `offset`. Output samples outside [0, resized) are black, as in torchvision's
// center_crop.
struct Axis {
  int64_t resized = 0;
  int64_t offset = 0;
  int64_t length = 0;
  // Source samples per resized sample.
  double scale = 1;
  // If true, shrinking averages over all source samples that become one output sample. If false, a sample is
  // interpolated between its two nearest, as in torch's interpolate(mode="bilinear", align_corners=False).
  bool antialias = true;
  // If true, the filter is a cubic of four samples (a = -0.5) instead of the triangle. REQUIRES: antialias.
  bool cubic = false;
};

// The centre `length` samples of a side scaled from `source` to `resized` samples, rounded as in torchvision.
// If `rounds_down`, half a sample is rounded down.
Axis CentreOf(int64_t source, int64_t resized, int64_t length, bool rounds_down = false);

// out[c] = gain[c] * source[from[c]] + bias[c].
struct ChannelMap {
  std::array<int, 3> from = {0, 1, 2};
  std::array<float, 3> gain = {1, 1, 1};
  std::array<float, 3> bias = {0, 0, 0};
};

// Three output planes; rows and planes are `row` and `plane` floats apart. Does not own the memory.
struct Planes {
  float* data = nullptr;
  size_t row = 0;
  size_t plane = 0;
};

// Writes [3, y.length, x.length] to `out` and leaves the gaps between its rows untouched. A cubic's result is
// limited to what pixels of 0 and 255 give. REQUIRES: x.cubic == y.cubic, and with it every gain is positive.
// Reads only the source pixels that the output depends on. Memory use is ResampleBytes(), independent of the
// size of the whole scaled picture. Throws only std::bad_alloc.
void Resample(const SourcePixels& source, const Axis& x, const Axis& y, const ChannelMap& channels,
              const Planes& out);

// The bytes that Resample() allocates for a source of this size: one output row and the filter's weights.
// With antialiasing there are 2 weights for each source sample of a side that shrinks, 4 if the filter is
// cubic, so a very long picture takes more for its weights than for its pixels.
int64_t ResampleBytes(int64_t width, int64_t height, const Axis& x, const Axis& y);

}  // namespace saccade::server
