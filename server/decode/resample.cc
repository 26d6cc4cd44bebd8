#include "server/decode/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/decode/taps.h"

namespace saccade::server {
namespace {

// Scales one source row to planar [3, length], in the source's channel order.
void ScaleRow(const uint8_t* row, const Taps& taps, float* scaled) {
  const size_t length = taps.windows.size();
  for (size_t i = 0; i < length; ++i) {
    const Taps::Window& window = taps.windows[i];
    const uint8_t* pixel = row + 3 * window.first;
    const float* weight = taps.weights.data() + window.weights;
    float a = 0;
    float b = 0;
    float c = 0;
    for (int64_t k = 0; k < window.count; ++k, pixel += 3) {
      a += weight[k] * static_cast<float>(pixel[0]);
      b += weight[k] * static_cast<float>(pixel[1]);
      c += weight[k] * static_cast<float>(pixel[2]);
    }
    scaled[i] = a;
    scaled[length + i] = b;
    scaled[2 * length + i] = c;
  }
}

void AddScaled(const float* row, float weight, size_t length, float* out) {
  for (size_t i = 0; i < length; ++i) out[i] += weight * row[i];
}

// Limits the output to what pixels of 0 and 255 give, because a cubic overshoots at edges.
void Limit(const ChannelMap& channels, size_t length, size_t height, const Planes& out) {
  for (size_t c = 0; c < 3; ++c) {
    const float black = channels.bias[c];
    const float white = channels.bias[c] + 255 * channels.gain[c];
    for (size_t i = 0; i < height; ++i) {
      float* const row = out.data + c * out.plane + i * out.row;
      for (size_t k = 0; k < length; ++k) row[k] = std::clamp(row[k], black, white);
    }
  }
}

}  // namespace

Axis CentreOf(int64_t source, int64_t resized, int64_t length, bool rounds_down) {
  // torchvision pads short sides by the floor of half the difference, and crops at Python's round(), which
  // rounds half to even.
  const int64_t cut = resized - length;
  const int64_t offset = cut < 0       ? -(-cut / 2)
                         : rounds_down ? cut / 2
                                       : static_cast<int64_t>(std::nearbyint(static_cast<double>(cut) / 2));
  return {.resized = resized,
          .offset = offset,
          .length = length,
          .scale = static_cast<double>(source) / static_cast<double>(resized)};
}

int64_t ResampleBytes(int64_t width, int64_t height, const Axis& x, const Axis& y) {
  return TapsBytes(x, width) + TapsBytes(y, height) + 3 * x.length * static_cast<int64_t>(sizeof(float));
}

void Resample(const SourcePixels& source, const Axis& x, const Axis& y, const ChannelMap& channels,
              const Planes& out) {
  const Taps columns = MakeTaps(x, source.width);
  const Taps rows = MakeTaps(y, source.height);
  const size_t length = columns.windows.size();
  const size_t height = rows.windows.size();
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < height; ++i)
      std::fill_n(out.data + c * out.plane + i * out.row, length, channels.bias[c]);
  }

  // Each source row is scaled once and added to every output row whose window contains it: [begin, end).
  std::vector<float> scaled(3 * length);
  size_t begin = 0;
  size_t end = 0;
  for (int64_t source_row = rows.windows.front().first; source_row < source.height; ++source_row) {
    while (end < height && rows.windows[end].first <= source_row) ++end;
    while (begin < end && rows.windows[begin].first + rows.windows[begin].count <= source_row) ++begin;
    if (begin == height) break;
    if (begin == end) continue;
    ScaleRow(source.data + source_row * source.row_bytes, columns, scaled.data());
    for (size_t i = begin; i < end; ++i) {
      const Taps::Window& window = rows.windows[i];
      const float weight = rows.weights[window.weights + (source_row - window.first)];
      for (size_t c = 0; c < 3; ++c) {
        AddScaled(scaled.data() + channels.from[c] * length, weight * channels.gain[c], length,
                  out.data + c * out.plane + i * out.row);
      }
    }
  }
  if (x.cubic) Limit(channels, length, height, out);
}

}  // namespace saccade::server
