// One call of the inverted residual on maps of bytes as plain pointers and numbers, without LibTorch.
#pragma once

#include <cstdint>

#include "kernels/common/arena.h"
#include "kernels/common/bfloat16.h"
#include "kernels/inverted_residual/inverted_residual_problem.h"

namespace saccade::kernels {

// Bytes of one vector. Rows of what is filtered and projected hold whole vectors.
inline constexpr int64_t kInt8Unit = 64;

// How bytes stand for numbers: scale * (byte - zero), with 0 <= zero <= 255.
struct ByteGrid {
  float scale = 1;
  int32_t zero = 0;

  bool operator==(const ByteGrid&) const = default;
};

// Weights are in panels of 64 outputs, the last of which may be smaller. A vector has four weights of each of
// 16 outputs. A panel of four vectors has its outputs in the order in which vectors of 32 bits are unpacked
// from one of bytes and packed into it (Int8Order), a smaller one in their own order. A number of a product
// is input scale * output scale * sum + bias. `scale`, `bias` and `sums` are in the order of the packed
// outputs and zero for those that only fill a vector.
struct PackedInt8Product {
  const int8_t* data = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  const double* sums = nullptr;  // each output's sum of weights times its scale
  int64_t inputs = 0;            // a multiple of 4
  int64_t outputs = 0;

  int64_t padded_outputs() const { return InvertedResidualLayers::Padded(outputs); }
};

// In the order of a panel of four vectors, for whole vectors of channels.
struct PackedInt8Filter {
  const int8_t* data = nullptr;  // [row / 64][3 columns][64 channels][3 rows and 0]
  const float* scale = nullptr;
  const float* bias = nullptr;
  const int32_t* sums = nullptr;  // each channel's sum of weights
};

// The place in a panel of 64 outputs of the packed output number i.
constexpr int64_t Int8Order(int64_t i) { return i % 16 / 4 * 16 + i / 16 * 4 + i % 4; }

struct Int8InvertedResidualWeights {
  InvertedResidualLayers layers;
  PackedInt8Product expand;  // null if nothing is expanded
  PackedInt8Filter filter;
  PackedInt8Product project;  // its inputs are a projected row, up to the next multiple of 4
  ByteGrid filtered;          // of what is expanded; if nothing is, then what is kept is on its own grid
  ByteGrid projected;
  ByteGrid out;

  // Channels of a position: those that are filtered, then those beside them, both without gaps.
  int64_t filtered_channels() const { return layers.expanded + layers.kept; }
  int64_t projected_channels() const { return filtered_channels() + layers.beside; }
  int64_t filtered_row() const { return RoundUp(filtered_channels(), kInt8Unit); }
  int64_t projected_row() const { return RoundUp(projected_channels(), kInt8Unit); }
};

// Dense channels-last maps of bytes; only what stands beside the filtered channels is in floats.
struct Int8InvertedResidualProblem {
  Int8InvertedResidualWeights weights;
  int64_t batch = 0;
  int64_t height = 0;  // at least 1, as the width
  int64_t width = 0;
  const uint8_t* x = nullptr;  // [B, H, W, inputs]; null if nothing is expanded
  ByteGrid x_grid = {};
  const uint8_t* kept = nullptr;  // [B, H, W, kept]; null if nothing is kept
  ByteGrid kept_grid = {};
  // [B, H', W', beside]: one of both, or none. A side H' is (H - 1) / stride + 1.
  const float* beside = nullptr;
  const BFloat16* beside_bfloat16 = nullptr;
  const uint8_t* skipped = nullptr;  // [B, H', W', outputs], added to the result, or null
  ByteGrid skipped_grid = {};
  uint8_t* out = nullptr;  // [B, H', W', outputs]

  int64_t out_height() const { return (height - 1) / weights.layers.stride + 1; }
  int64_t out_width() const { return (width - 1) / weights.layers.stride + 1; }
};

}  // namespace saccade::kernels
