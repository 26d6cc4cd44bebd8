// One axis of global self-attention: its arguments, and what a block computes.
#pragma once

#include "kernels/gsa/gsa_rows.cuh"

namespace saccade::kernels {

// One axis of one call, as passed to the kernel. If `axis` is -1, there is no axis, only the content; lines
// are then rows.
//
// A block computes tiles of kOwn positions of some lines of one head, for a few value channels. It walks
// along the lines in steps of kKeys positions: first it computes the scores of one own position on all its
// lines as a product with the embedding, whose rows depend on the distance alone; then, line by line, the
// product of the scores and the values. The scores change their order between the two in shared memory.
struct GsaAxis {
  static constexpr int kOwn = 16;
  static constexpr int kKeys = 32;
  static constexpr int kDistances = kOwn + kKeys - 1;  // between a tile's own positions and keys
  static constexpr int64_t kBlocksWanted = 512;

  template <typename T>
  static constexpr int kLines = sizeof(T) == 2 ? 16 : 8;  // per block

  int64_t Blocks() const { return batch * heads * line_blocks * channel_blocks * own_blocks; }

  int64_t batch;
  int heads;
  Extent extent;
  int axis;
  int length, lines;    // positions along the axis, and lines across it
  int step, line_step;  // between positions, and between lines, in positions of the map
  GsaRows q, k, values;
  // The result. The first of two axes writes it into the workspace.
  void* out;
  int64_t out_batch, out_head;         // strides
  int out_channel, out_own, out_line;  // strides within a head
  bool out_pairs;  // two neighbouring channels from an even one on may be stored as one word
  bool last;
  const float* embedding;  // row of offset zero; rows are q.channels floats apart
  int reach;
  const float* context;  // [B, heads, key_channels, value_channels], or null
  const float* scale;    // [C], like shift; or null
  const float* shift;
  // How the work is divided into blocks. Does not change the result.
  int line_blocks, channel_blocks, own_blocks;
};

// What a block computes, and where. Offsets within a head's map fit in 32 bits.
struct GsaAxisPlace {
  __device__ GsaAxisPlace(const GsaAxis& run, int lines_per_block, int channels_per_block) {
    unsigned block = blockIdx.x;
    first_own = static_cast<int>(block % run.own_blocks) * GsaAxis::kOwn;
    block /= run.own_blocks;
    first_channel = static_cast<int>(block % run.channel_blocks) * channels_per_block;
    block /= run.channel_blocks;
    first_line = static_cast<int>(block % run.line_blocks) * lines_per_block;
    matrix = static_cast<int>(block / run.line_blocks);
    const DeviceBox box(run.extent, matrix / run.heads);
    length = run.axis == 0 ? box.size[1] : box.size[2];
    lines = run.axis == 0 ? box.size[2] : box.size[1];
  }
  __device__ int Keys(const GsaAxis& run) const { return run.axis < 0 ? 0 : length; }
  __device__ int OwnEnd(const GsaAxis& run) const { return run.last ? run.length : length; }

  __device__ bool IsEmpty() const { return length <= 0 || lines <= 0; }
  __device__ bool IsValid(int line, int own) const { return line < lines && own < length; }

  // Returns the offset of a position's channels in the head's map. If there is no such position, it is that
  // of another one: what is computed from it is not stored. The sample must not be empty.
  __device__ int Nearest(const GsaAxis& run, const GsaRows& rows, int line, int own) const {
    const int y = line < lines ? line : lines - 1;
    const int x = own < length ? own : length - 1;
    return (y * run.line_step + x * run.step) * rows.stride;
  }

  // Return the offsets of the head in the result and in a map.
  __device__ int64_t OutOffset(const GsaAxis& run) const {
    return matrix / run.heads * run.out_batch + matrix % run.heads * run.out_head;
  }
  __device__ int64_t OffsetIn(const GsaRows& rows) const {
    return static_cast<int64_t>(matrix) * rows.positions * rows.stride;
  }

  int matrix;
  int first_line, first_channel, first_own;
  int length, lines;  // valid ones
};

// Returns the offset in a way that keeps the compiler from computing it anew in every loop.
__device__ inline int64_t Kept(int64_t offset) {
#if defined(__CUDACC__)
  asm volatile("" : "+l"(offset));
#endif
  return offset;
}

// Returns the embedding's value for positions that are `offset` further, or zero if there is none.
__device__ inline float EmbeddingAt(const GsaAxis& run, int offset, int channel) {
  const bool there = offset > -run.reach && offset < run.reach && channel < run.q.channels;
  return there ? run.embedding[static_cast<int64_t>(offset) * run.q.channels + channel] : 0.0f;
}

// Returns the context's value, or zero outside of it.
__device__ inline float ContextAt(const GsaAxis& run, const GsaAxisPlace& place, int key, int channel) {
  const bool there = key < run.q.channels && channel < run.values.channels;
  return there
             ? run.context[(static_cast<int64_t>(place.matrix) * run.q.channels + key) * run.values.channels +
                           channel]
             : 0.0f;
}

// The batch norm of a thread's channels `first`, `first` + 1 and so on of the head.
template <int kCount>
struct GsaAffine {
  GsaAffine() = default;
  __device__ GsaAffine(const GsaAxis& run, const GsaAxisPlace& place, int first) {
    SACCADE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const bool given = run.scale != nullptr && first + i < run.values.channels;
      const int c = place.matrix % run.heads * run.values.channels + first + i;
      scale[i] = given ? run.scale[c] : 1.0f;
      shift[i] = given ? run.shift[c] : 0.0f;
    }
  }
  float scale[kCount], shift[kCount];
};

}  // namespace saccade::kernels
