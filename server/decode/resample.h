// Scaling, cropping and normalising in one pass, with the triangle filter of Pillow and of torchvision's
// antialias=True, or plain bilinear. OpenCV has no such filter: its INTER_LINEAR aliases when shrinking, its
// INTER_AREA is a box.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace saccade::server {

// 8-bit, three interleaved channels; `row_bytes` from one row to the next. Owns nothing.
struct SourcePixels {
  const uint8_t* data = nullptr;
  size_t row_bytes = 0;
  int64_t width = 0;
  int64_t height = 0;
};

// How one side of the output lies on the source: scaled to `resized` samples, of which `length` are wanted
// from `offset` on. What is wanted beyond either end is black, as in torchvision's center_crop.
struct Axis {
  int64_t resized = 0;
  int64_t offset = 0;
  int64_t length = 0;
  // Source samples per resized one.
  double scale = 1;
  // Shrinking averages over what becomes one sample. Without it, a sample lies between its two nearest, as in
  // torch's interpolate(mode="bilinear", align_corners=False).
  bool antialias = true;
};

// The middle `length` of a side that is scaled from `source` to `resized` samples, rounded as torchvision
// does.
Axis CentreOf(int64_t source, int64_t resized, int64_t length);

// out[c] = gain[c] * source[from[c]] + bias[c].
struct ChannelMap {
  std::array<int, 3> from = {0, 1, 2};
  std::array<float, 3> gain = {1, 1, 1};
  std::array<float, 3> bias = {0, 0, 0};
};

// Three planes that rows are written into, `row` and `plane` floats apart. Owns nothing.
struct Planes {
  float* data = nullptr;
  size_t row = 0;
  size_t plane = 0;
};

// Writes [3, y.length, x.length] to `out`, and nothing between its rows. Reads only what the output depends
// on, and holds one row and the filter's weights in memory, so that the size of the scaled picture, of which
// the output is a part, does not matter. Throws std::bad_alloc only.
void Resample(const SourcePixels& source, const Axis& x, const Axis& y, const ChannelMap& channels,
              const Planes& out);

}  // namespace saccade::server
