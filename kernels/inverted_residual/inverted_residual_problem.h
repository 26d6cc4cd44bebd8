// One call of the inverted residual as plain pointers and numbers, without LibTorch.
#pragma once

#include <cstdint>

namespace saccade::kernels {

// Channels are counted in units of 16, the lanes of the widest vector: rows of scratch memory and of packed
// weights hold whole units.
inline constexpr int64_t kChannelUnit = 16;

// The sizes of a module's layers, and where the packed weights have them.
struct InvertedResidualLayers {
  int64_t inputs = 0;    // of the expansion
  int64_t expanded = 0;  // made by the expansion; 0 if there is none
  int64_t kept = 0;      // given to the filter behind the expanded ones
  int64_t beside = 0;    // given to the projection behind the filtered ones
  int64_t outputs = 0;
  int64_t stride = 1;

  static constexpr int64_t Padded(int64_t channels) {
    return (channels + kChannelUnit - 1) / kChannelUnit * kChannelUnit;
  }
  // A row of what is filtered: the expanded channels, then the kept ones, each padded.
  int64_t filtered_row() const { return Padded(expanded) + Padded(kept); }
  // A row of what is projected: the filtered row, then the channels beside it, padded.
  int64_t projected_row() const { return filtered_row() + Padded(beside); }
};

// Weights of a product, packed for whole vectors of outputs: panels of one to three units of outputs. A panel
// that begins at unit u begins at data[u * kChannelUnit * inputs], and has for each input, or in bfloat16 for
// each pair of inputs, the weights of its outputs, those of a pair next to each other.
struct PackedProduct {
  const void* data = nullptr;   // float or BFloat16, as the maps
  const float* bias = nullptr;  // [outputs, padded]
  int64_t inputs = 0;           // even in bfloat16
  int64_t outputs = 0;
};

struct InvertedResidualWeights {
  InvertedResidualLayers layers;
  PackedProduct expand;                // null if nothing is expanded
  const float* filter = nullptr;       // [9][filtered_row]
  const float* filter_bias = nullptr;  // [filtered_row]
  PackedProduct project;               // its inputs are a projected row
};

// Dense channels-last maps of float or BFloat16.
struct InvertedResidualProblem {
  InvertedResidualWeights weights;
  int64_t batch = 0;
  int64_t height = 0;  // at least 1, as the width
  int64_t width = 0;
  const void* x = nullptr;        // [B, H, W, inputs]; null if nothing is expanded
  const void* kept = nullptr;     // [B, H, W, kept]; null if nothing is kept
  const void* beside = nullptr;   // [B, H', W', beside] or null; a side H' is (H - 1) / stride + 1
  const void* skipped = nullptr;  // [B, H', W', outputs], added to the result, or null
  void* out = nullptr;            // [B, H', W', outputs]

  int64_t out_height() const { return (height - 1) / weights.layers.stride + 1; }
  int64_t out_width() const { return (width - 1) / weights.layers.stride + 1; }
};

}  // namespace saccade::kernels
