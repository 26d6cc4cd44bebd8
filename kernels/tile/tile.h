// What the CPU code of the operators is made of: tiles of 64 positions in the type that sums are kept in, and
// the few loops over them, compiled once per instruction set. Knows neither LibTorch nor threads.
//
// A tile is [channels][kTile] unless said otherwise: a channel's 64 positions are adjacent. Whatever layout
// and type a map has, it is loaded into tiles, worked on there, and stored from there; strided maps are read
// in place. Rows of every matrix in scratch memory are padded to a multiple of kRowPadding entries, and the
// loops may read and write the padding: it may hold anything, and comes to hold anything.
//
// No loop allocates, and each adds up in an order that its sizes alone decide.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/feature_map.h"
#include "kernels/common/valid_box.h"

namespace saccade::kernels {

inline constexpr int64_t kTile = 64;
inline constexpr int64_t kRowPadding = 16;

// A matrix read in place; entry (i, j) is data[i * row + j * column]. One of the strides should be 1.
template <typename A>
struct MatrixView {
  const A* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
  MatrixView Transposed() const { return {data, column, row}; }
};

// Channels and positions of a map from one element on; strides in elements.
struct Strip {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  int64_t channel_stride = 0;
  int64_t position_stride = 1;
};
struct OutputStrip {
  void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  int64_t channel_stride = 0;
  int64_t position_stride = 1;
};

// A is float or double. Maps of float32 and bfloat16 are read into float, of float64 into double.
template <typename A>
struct TileCode {
  // tile[c * row + i] = from(c, i) for i < length.
  void (*load)(const Strip& from, int64_t channels, int64_t length, A* tile, int64_t row);
  // matrix[i * row + c] = from(c, i): positions are rows.
  void (*load_transposed)(const Strip& from, int64_t channels, int64_t length, A* matrix, int64_t row);
  // to(c, i) = tile[c * row + i].
  void (*store)(const A* tile, int64_t row, int64_t channels, int64_t length, const OutputStrip& to);

  // c(m x n) = a(m x k) b(k x n), or += if `accumulate`. Rows of b and c are adjacent entries, b_row and
  // c_row apart.
  void (*product)(int64_t m, int64_t n, int64_t k, const MatrixView<A>& a, const A* b, int64_t b_row, A* c,
                  int64_t c_row, bool accumulate);
  // to[j * to_row + i] = from[i * from_row + j].
  void (*transpose)(const A* from, int64_t rows, int64_t columns, int64_t from_row, A* to, int64_t to_row);

  // Softmax of each column of x over its rows, in place.
  void (*softmax)(A* x, int64_t rows, int64_t columns, int64_t row);
  // One step of a softmax over more rows than are at hand. max and sum have an entry a column, at first
  // -infinity and zero; x becomes exp(x - max), and what was added up under the old maximum is to be scaled
  // by `rescale`. True if any rescale is not 1.
  bool (*online_softmax)(A* x, int64_t rows, int64_t columns, int64_t row, A* max, A* sum, A* rescale);
  // x[r][j] *= factor[j].
  void (*scale_columns)(A* x, int64_t rows, int64_t columns, int64_t row, const A* factor);
  // x[r][j] = x[r][j] * scale[r] + shift[r] + add[r][j]; scale, shift and add may be null. Rows of add as of
  // x.
  void (*affine)(A* x, int64_t rows, int64_t columns, int64_t row, const A* scale, const A* shift,
                 const A* add);
  // sums[r] += x[r][0] + ... + x[r][columns - 1]; columns need not be padded.
  void (*add_row_sums)(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums);
  // sums[j] += the sum over r of x[r][j].
  void (*add_column_sums)(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums);
};

// The loops for `isa`, which this processor must have. double always gets the portable ones: it is for
// checking.
template <typename A>
const TileCode<A>& TileCodeFor(CpuIsa isa);

// The valid positions numbered [begin, begin + count) of one sample, channels [channel, channel + channels),
// as a tile or as a matrix of positions. Nothing beyond the box is read.
template <typename A>
void LoadTile(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, int64_t sample,
              const ValidBox& box, int64_t channel, int64_t channels, int64_t begin, int64_t count, A* tile,
              int64_t row = kTile);
template <typename A>
void LoadPositions(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, int64_t sample,
                   const ValidBox& box, int64_t channel, int64_t channels, int64_t begin, int64_t count,
                   A* matrix, int64_t row);
template <typename A>
void StoreTile(const TileCode<A>& code, const A* tile, const OutputMap& map, Dtype dtype, int64_t sample,
               const ValidBox& box, int64_t channel, int64_t channels, int64_t begin, int64_t count,
               int64_t row = kTile);

// Zero wherever the box is not, for one sample of an output with `channels` channels.
void ZeroPadding(const OutputMap& map, Dtype dtype, int64_t sample, const Extent& extent, const ValidBox& box,
                 int64_t channels);

}  // namespace saccade::kernels
