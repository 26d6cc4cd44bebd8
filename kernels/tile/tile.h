// Building blocks of the operators' CPU code: tiles of 64 positions in the accumulation type, and a few loops
// over them, compiled once per instruction set. Independent of LibTorch and of threads.
//
// A tile is [channels][kTile] unless stated otherwise: a channel's 64 positions are adjacent. Maps of any
// layout and type are loaded into tiles, processed there, and stored from there; strided maps are read in
// place. Rows of every matrix in scratch memory are padded to a multiple of kRowPadding entries. The loops
// may read and write the padding, whose content is unspecified.
//
// No loop allocates. The order of every sum depends on its sizes alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu_isa.h"
#include "kernels/common/feature_map.h"
#include "kernels/common/valid_box.h"

namespace saccade::kernels {

inline constexpr int64_t kTile = 64;
inline constexpr int64_t kRowPadding = 16;

// A matrix read in place; entry (i, j) is data[i * row + j * column]. `product` requires that one of the
// strides is 1.
template <typename A>
struct MatrixView {
  const A* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;
  MatrixView Transposed() const { return {data, column, row}; }
};

// Channels and positions of a map, starting at one element; strides are in elements.
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

// The loops of one instruction set. A is float or double: maps of float32 and bfloat16 are read into float,
// maps of float64 into double.
template <typename A>
struct TileCode {
  // tile[c * row + i] = from(c, i) for i < length.
  void (*load)(const Strip& from, int64_t channels, int64_t length, A* tile, int64_t row);
  // matrix[i * row + c] = from(c, i), so that positions are rows.
  void (*load_transposed)(const Strip& from, int64_t channels, int64_t length, A* matrix, int64_t row);
  // to(c, i) = tile[c * row + i].
  void (*store)(const A* tile, int64_t row, int64_t channels, int64_t length, const OutputStrip& to);

  // c(m x n) = a(m x k) b(k x n), or c += if `accumulate`. The entries of each row of b and c are adjacent;
  // rows are b_row and c_row apart.
  void (*product)(int64_t m, int64_t n, int64_t k, const MatrixView<A>& a, const A* b, int64_t b_row, A* c,
                  int64_t c_row, bool accumulate);
  // to[j * to_row + i] = from[i * from_row + j].
  void (*transpose)(const A* from, int64_t rows, int64_t columns, int64_t from_row, A* to, int64_t to_row);

  // Softmax of each column of x over its rows, in place.
  void (*softmax)(A* x, int64_t rows, int64_t columns, int64_t row);
  // One step of a softmax whose rows arrive in blocks. max and sum have one entry per column, initially
  // -infinity and zero. x becomes exp(x - max), and the caller must multiply what it accumulated so far by
  // `rescale`. Returns true if any rescale is not 1.
  bool (*online_softmax)(A* x, int64_t rows, int64_t columns, int64_t row, A* max, A* sum, A* rescale);
  // x[r][j] *= factor[j].
  void (*scale_columns)(A* x, int64_t rows, int64_t columns, int64_t row, const A* factor);
  // x[r][j] = x[r][j] * scale[r] + shift[r] + add[r][j]; scale, shift and add may be null. Rows of `add` are
  // `row` apart too.
  void (*affine)(A* x, int64_t rows, int64_t columns, int64_t row, const A* scale, const A* shift,
                 const A* add);
  // sums[r] += x[r][0] + ... + x[r][columns - 1]; here columns need not be padded.
  void (*add_row_sums)(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums);
  // sums[j] += the sum over r of x[r][j].
  void (*add_column_sums)(const A* x, int64_t rows, int64_t columns, int64_t row, A* sums);
};

// Returns the loops for `isa`, which this processor must support, and for maps of `dtype`: products of
// bfloat16 maps round both operands to bfloat16 where the processor multiplies it itself (with
// CpuIsa::kAvx512), with AMX where brgemm/brgemm.cc finds it. For double, always returns the portable loops:
// double is for checking only.
template <typename A>
const TileCode<A>& TileCodeFor(CpuIsa isa, Dtype dtype = Dtype::kFloat32);

// A part of one sample's map: channels [channel, channel + channels) at the valid positions numbered [begin,
// begin + count). `box` holds the sample's valid positions and must outlive the block.
struct MapBlock {
  int64_t sample;
  const ValidBox& box;
  int64_t channel;
  int64_t channels;
  int64_t begin;
  int64_t count;
};

// Load or store a block, as a tile or as a matrix whose rows are positions. Nothing outside the box is
// accessed.
template <typename A>
void LoadTile(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, const MapBlock& block, A* tile,
              int64_t row = kTile);
template <typename A>
void LoadPositions(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, const MapBlock& block,
                   A* matrix, int64_t row);
template <typename A>
void StoreTile(const TileCode<A>& code, const A* tile, const OutputMap& map, Dtype dtype,
               const MapBlock& block, int64_t row = kTile);

// Writes zeros outside the box, for one sample of an output with `channels` channels.
void ZeroPadding(const OutputMap& map, Dtype dtype, int64_t sample, const Extent& extent, const ValidBox& box,
                 int64_t channels);

}  // namespace saccade::kernels
