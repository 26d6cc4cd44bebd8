// The inner loops of the inverted residual on maps of bytes.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"
#include "kernels/inverted_residual/inverted_residual_int8_problem.h"

namespace saccade::kernels {

// How an integer sum becomes a byte. Each operation is rounded to float32, as oneDNN does it:
//   number = sum * in_scale * scale[channel] + bias[channel]
//   if something is added: number = fma(byte - added.zero, added.scale, number)
//   byte = the nearest integer, even if there are two, to number * inverse + zero, between low and high
struct Int8Rounding {
  float in_scale = 1;
  float inverse = 1;  // 1 / the output's scale
  int32_t zero = 0;
  int32_t low = 0;
  float high = 255;
};

// What a product writes, position by position.
struct Int8Output {
  uint8_t* data = nullptr;
  int64_t row = 0;  // from a position to the next
  // Whether outputs that only fill a vector get written too, with bytes without a meaning.
  bool whole_vectors = false;
  Int8Rounding rounding = {};
  const uint8_t* added = nullptr;  // [positions][outputs] with the rows of data, or null
  ByteGrid added_grid = {};
};

// One row of what is filtered.
struct Int8FilterRow {
  const uint8_t* rows[3];  // of positions with `row` channels; the first is left of the first output's middle
  int64_t row = 0;
  int32_t zero = 0;  // of the bytes in `rows`
  int64_t stride = 1;
  int64_t positions = 0;
  Int8Rounding rounding = {};
  uint8_t* out = nullptr;
  int64_t out_row = 0;
};

// Positions whose channels are rounded to a grid.
struct Int8Copy {
  int64_t positions = 0;
  int64_t channels = 0;
  ByteGrid to_grid = {};
  uint8_t* to = nullptr;
  int64_t to_row = 0;
};

struct Int8InvertedResidualCode {
  // Computes the panel of outputs number `panel` at `positions` positions, which are x_row apart. `bias` is
  // used in place of that of the weights.
  void (*product)(const uint8_t* x, int64_t x_row, int64_t positions, const PackedInt8Product& weights,
                  const float* bias, int64_t panel, const Int8Output& out);
  void (*filter)(const PackedInt8Filter& weights, const Int8FilterRow& row);
  void (*round_bytes)(const uint8_t* from, const ByteGrid& grid, const Int8Copy& copy);
  void (*round_floats)(const float* from, const Int8Copy& copy);
  void (*round_bfloat16)(const BFloat16* from, const Int8Copy& copy);
};

#if defined(__x86_64__)
// For processors with AVX-512 VNNI.
const Int8InvertedResidualCode& Int8InvertedResidualAvx512VnniCode();
#endif

}  // namespace saccade::kernels
