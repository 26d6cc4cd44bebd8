// One axis of global self-attention: its arguments, and what a block computes.
#pragma once

#include "kernels/gsa/gsa_rows.cuh"

namespace saccade::kernels {

// One axis of one call, as passed to the kernel. `axis` is -1 if there is no axis, only the content; lines
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

  // Number of positions along the axis, and of lines across it.
  int64_t Length() const { return extent.size[axis == 0 ? 1 : 2]; }
  int64_t Lines() const { return extent.size[axis == 0 ? 2 : 1]; }
  int64_t Blocks() const { return batch * heads * line_blocks * channel_blocks * own_blocks; }

  int64_t batch;
  int heads;
  Extent extent;
  int axis;
  GsaRows q, k, values;
  GsaRows between;  // the result of the first of two axes
  OutputMap out;    // the last axis's
  bool last;
  bool softmax;            // apply a softmax to the scores, which then include k
  const float* embedding;  // row of offset zero; rows are q.channels floats apart
  int reach;
  const float* context;  // [B, heads, key_channels, value_channels], or null
  const float* scale;    // [C], like shift; or null
  const float* shift;
  // How the work is divided into blocks. Does not change the result.
  int line_blocks, channel_blocks, own_blocks;
};

// What a block computes, and where.
struct GsaAxisPlace {
  __device__ GsaAxisPlace(const GsaAxis& run, int lines_per_block, int channels_per_block) {
    unsigned block = blockIdx.x;
    first_own = static_cast<int>(block % run.own_blocks) * GsaAxis::kOwn;
    block /= run.own_blocks;
    first_channel = static_cast<int>(block % run.channel_blocks) * channels_per_block;
    block /= run.channel_blocks;
    first_line = static_cast<int>(block % run.line_blocks) * lines_per_block;
    matrix = block / run.line_blocks;
    sample = matrix / run.heads;
    head = static_cast<int>(matrix % run.heads);
    const DeviceBox box(run.extent, sample);
    const int along = run.axis == 0 ? 1 : 2;
    const int across = run.axis == 0 ? 2 : 1;
    length = box.size[along];
    lines = box.size[across];
    all_lines = box.full[across];
    keys = run.axis < 0 ? 0 : length;
    own_end = run.last ? box.full[along] : length;
    step = run.axis == 0 ? box.full[2] : 1;
    line_step = run.axis == 0 ? 1 : box.full[2];
  }
  __device__ int PositionOf(int line, int own) const { return line * line_step + own * step; }

  // Returns the vector of a map's channels at a position, or null if that is outside the sample.
  template <typename T>
  __device__ const T* Find(const GsaRows& rows, int line, int own) const {
    return line < lines && own < length ? rows.Row<T>(matrix, PositionOf(line, own)) : nullptr;
  }

  // Stores the results of `kCount` neighbouring channels of the head, from an even one on. A map of 16-bit
  // elements in the workspace is written in pairs, which may end in the padding of the head.
  template <typename T, int kCount>
  __device__ void Store(const GsaAxis& run, int line, int own, int channel,
                        const float (&values)[kCount]) const {
    if (channel >= run.values.channels || line >= all_lines || own >= own_end) return;
    const int c = head * run.values.channels + channel;
    float stored[kCount];
    SACCADE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      stored[i] = line < lines && own < length ? values[i] : 0.0f;
      const bool affine = run.scale != nullptr && channel + i < run.values.channels;
      if (affine && line < lines && own < length) stored[i] = values[i] * run.scale[c + i] + run.shift[c + i];
    }
    if (run.last) {
      T* const to = static_cast<T*>(run.out.data) + sample * run.out.batch_stride +
                    c * run.out.channel_stride + line * run.out.spatial_stride[run.axis == 0 ? 2 : 1] +
                    own * run.out.spatial_stride[run.axis == 0 ? 1 : 2];
      SACCADE_UNROLL
      for (int i = 0; i < kCount; ++i) {
        if (channel + i < run.values.channels) FromFloat(stored[i], to + i * run.out.channel_stride);
      }
      return;
    }
    T* const to = run.between.Row<T>(matrix, PositionOf(line, own)) + channel;
    if constexpr (kCount == 2 && sizeof(T) == 2) {
      StorePair(PackedPair<T>(stored[0], stored[1]), to);
    } else {
      SACCADE_UNROLL
      for (int i = 0; i < kCount; ++i) FromFloat(stored[i], to + i);
    }
  }

  int64_t matrix, sample;
  int head;
  int first_line, first_channel, first_own;
  int length, lines;  // valid ones
  int all_lines;
  int keys;
  int own_end;
  int step, line_step;
};

// Returns the embedding's value for positions that are `offset` further, or zero if there is none.
__device__ inline float EmbeddingAt(const GsaAxis& run, int offset, int channel) {
  const bool there = offset > -run.reach && offset < run.reach && channel < run.q.channels;
  return there ? run.embedding[static_cast<int64_t>(offset) * run.q.channels + channel] : 0.0f;
}

// Returns the context's value, or zero outside of it.
__device__ inline float ContextAt(const GsaAxis& run, const GsaAxisPlace& place, int key, int channel) {
  const bool there = key < run.q.channels && channel < run.values.channels;
  return there ? run.context[(place.matrix * run.q.channels + key) * run.values.channels + channel] : 0.0f;
}

}  // namespace saccade::kernels
