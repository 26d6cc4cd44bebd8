// Included only by roi_align_portable.cc, roi_align_avx2.cc and roi_align_avx512.cc, each compiled with its
// own flags.
#pragma once

#include <type_traits>

#include "kernels/common/vec.h"
#include "kernels/roi_align/roi_align_blocks.h"

namespace saccade::kernels::SACCADE_ISA {

// Some of the pixels that a bin depends on, in the order of the axes.
template <typename A>
struct Taps {
  static constexpr int kCapacity = 64;
  int64_t offset[kCapacity];
  A weight[kCapacity];
  int count = 0;
};

// Collects a bin's taps in `taps`. Calls visit() whenever it is full, and once at the end for the rest.
template <typename A, typename Visit>
inline void ForTaps(const RoiTaps<A> axes[kMaxSpatialDims], const int64_t bin[kMaxSpatialDims], Taps<A>* taps,
                    const Visit& visit) {
  taps->count = 0;
  for (int32_t i = axes[0].begin[bin[0]]; i < axes[0].begin[bin[0] + 1]; ++i) {
    for (int32_t j = axes[1].begin[bin[1]]; j < axes[1].begin[bin[1] + 1]; ++j) {
      const int64_t row = axes[0].offset[i] + axes[1].offset[j];
      const A row_weight = axes[0].weight[i] * axes[1].weight[j];
      for (int32_t k = axes[2].begin[bin[2]]; k < axes[2].begin[bin[2] + 1]; ++k) {
        if (taps->count == Taps<A>::kCapacity) {
          visit();
          taps->count = 0;
        }
        taps->offset[taps->count] = row + axes[2].offset[k];
        taps->weight[taps->count++] = row_weight * axes[2].weight[k];
      }
    }
  }
  visit();
}

// Adds the taps of `count` channels, which are kVectors vectors or a part of one.
template <int kVectors, bool kPart, typename T, typename A = Accumulate<T>>
inline void AddTaps(const Taps<A>& taps, const T* map, int64_t count, Vec<A> sums[kVectors]) {
  for (int i = 0; i < taps.count; ++i) {
    const T* pixel = map + taps.offset[i];
    for (int v = 0; v < kVectors; ++v) {
      sums[v] += (kPart ? LoadPart(pixel, count) : Load(pixel + v * kLanes<A>)) * taps.weight[i];
    }
  }
}

// Pools one bin of some channels. `all`: `taps` already holds all taps of the bin.
template <int kVectors, bool kPart, typename T, typename A = Accumulate<T>>
inline void PoolChannels(const RoiTaps<A> axes[kMaxSpatialDims], const int64_t bin[kMaxSpatialDims], bool all,
                         Taps<A>* taps, const T* map, int64_t count, T* out, int64_t out_stride) {
  Vec<A> sums[kVectors] = {};
  if (all) {
    AddTaps<kVectors, kPart>(*taps, map, count, sums);
  } else {
    ForTaps(axes, bin, taps, [&] { AddTaps<kVectors, kPart>(*taps, map, count, sums); });
  }
  for (int v = 0; v < kVectors; ++v) {
    if (out_stride == 1) {
      kPart ? StorePart(out, sums[v], count) : Store(out + v * kLanes<A>, sums[v]);
      continue;
    }
    for (int i = 0; i < (kPart ? count : kLanes<A>); ++i)
      out[(v * kLanes<A> + i) * out_stride] = T(sums[v][i]);
  }
}

template <typename T, typename A = Accumulate<T>>
void AlongChannels(const RoiTaps<A> axes[kMaxSpatialDims], const T* map, int64_t channels,
                   const RoiTarget<T>& out) {
  constexpr int kVectors = 8;
  Taps<A> taps;
  T* to = out.data;
  int64_t bin[kMaxSpatialDims];
  for (bin[0] = 0; bin[0] < axes[0].bins; ++bin[0]) {
    for (bin[1] = 0; bin[1] < axes[1].bins; ++bin[1]) {
      for (bin[2] = 0; bin[2] < axes[2].bins; ++bin[2], to += out.bin_stride) {
        int visits = 0;
        ForTaps(axes, bin, &taps, [&] { ++visits; });
        const auto pool = [&](auto vectors, auto part, int64_t c) {
          PoolChannels<vectors, part>(axes, bin, visits == 1, &taps, map + c, channels - c,
                                      to + c * out.channel_stride, out.channel_stride);
        };
        int64_t c = 0;
        for (; c + kVectors * kLanes<A> <= channels; c += kVectors * kLanes<A>) {
          pool(std::integral_constant<int, kVectors>(), std::false_type(), c);
        }
        for (; c + kLanes<A> <= channels; c += kLanes<A>) {
          pool(std::integral_constant<int, 1>(), std::false_type(), c);
        }
        if (c < channels) pool(std::integral_constant<int, 1>(), std::true_type(), c);
      }
    }
  }
}

enum class Reading {
  kVectors,  // pixels of a row are adjacent, and no vector ends past the map
  kParts,    // adjacent, but the map may end within a vector
  kStrided,
};

// Loads a chunk of a row as one vector. Lanes from `pixels` on hold whatever follows in memory, or zero.
template <Reading kReading, typename T>
inline Vec<Accumulate<T>> LoadChunk(const T* from, const T* limit, int64_t pixels, int64_t stride) {
  constexpr int kCount = kLanes<Accumulate<T>>;
  if constexpr (kReading == Reading::kVectors) {
    return Load(from);
  } else if constexpr (kReading == Reading::kParts) {
    return limit - from >= kCount ? Load(from) : LoadPart(from, pixels);
  } else {
    T lanes[kCount] = {};
    for (int64_t i = 0; i < pixels; ++i) lanes[i] = from[i * stride];
    return Load(static_cast<const T*>(lanes));
  }
}

// Returns a vector whose lane i is lane index[i] of the concatenation of a and b.
template <typename A, typename Index>
inline Vec<A> Pick(Vec<A> a, Vec<A> b, Index index) {
#if defined(__clang__)  // which has no shuffle by a variable
  Vec<A> picked{};
  for (int i = 0; i < kLanes<A>; ++i)
    picked[i] = index[i] < kLanes<A> ? a[index[i]] : b[index[i] - kLanes<A>];
  return picked;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

// Returns the length of the line that holds one channel's pooled bins; bins past its end may be written.
inline int64_t LineOf(int64_t bins) {
  return (bins + 2 * kRoiBinPadding - 1) / kRoiBinPadding * kRoiBinPadding;
}

// Pools kChannels channels together, one row of bins after the other: sums the rows of the map that it
// depends on, then selects each bin's columns from the sum. kChunks is 1 or 2 if the sum fits in registers,
// or 0 if it goes through `sums`.
template <int kChannels, int kChunks, Reading kReading, typename T, typename A = Accumulate<T>>
inline void PoolLines(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                      int64_t channel_stride, A* line, A* sums) {
  const int64_t line_stride = LineOf(outer[0].bins * outer[1].bins * columns.bins);
  const auto sum_rows = [&](int64_t plane, int64_t row, int64_t chunk, Vec<A> sum[kChannels]) {
    for (int c = 0; c < kChannels; ++c) sum[c] = Vec<A>{};
    for (int32_t i = outer[0].begin[plane]; i < outer[0].begin[plane + 1]; ++i) {
      const T* from = map + outer[0].offset[i] + columns.chunk_offset[chunk];
      for (int32_t j = outer[1].begin[row]; j < outer[1].begin[row + 1]; ++j) {
        const A weight = outer[0].weight[i] * outer[1].weight[j];
        for (int c = 0; c < kChannels; ++c) {
          sum[c] += LoadChunk<kReading>(from + outer[1].offset[j] + c * channel_stride, limit,
                                        columns.chunk_pixels[chunk], columns.pixel_stride) *
                    weight;
        }
      }
    }
  };
  for (int64_t plane = 0; plane < outer[0].bins; ++plane) {
    for (int64_t row = 0; row < outer[1].bins; ++row, line += columns.bins) {
      Vec<A> sum[kChunks == 0 ? 1 : kChunks][kChannels];
      for (int64_t q = 0; q < (kChunks == 0 ? columns.chunks : kChunks); ++q) {
        sum_rows(plane, row, q, sum[kChunks == 0 ? 0 : q]);
        for (int c = 0; c < kChannels && kChunks == 0; ++c) {
          Store(sums + (c * columns.chunks + q) * kLanes<A>, sum[0][c]);
        }
      }
      for (int64_t first = 0; first < columns.bins; first += kLanes<A>) {
        Vec<A> picked[kChannels] = {};
        for (int64_t s = 0; s < columns.steps; ++s) {
          const auto* pixel = columns.pixel + s * columns.padded_bins + first;
          const Vec<A> weight = Load(columns.weight + s * columns.padded_bins + first);
          // A bin that has no such tap refers to any pixel, which may be infinite.
          const auto used = weight != 0;
          for (int c = 0; c < kChannels; ++c) {
            if constexpr (kChunks == 0) {
              const A* of_channel = sums + c * columns.chunks * kLanes<A>;
              A lanes[kLanes<A>];
              for (int i = 0; i < kLanes<A>; ++i) lanes[i] = of_channel[pixel[i]];
              picked[c] += used ? Load(static_cast<const A*>(lanes)) * weight : Vec<A>{};
            } else {
              picked[c] += used ? Pick<A>(sum[0][c], sum[kChunks - 1][c], Load(pixel)) * weight : Vec<A>{};
            }
          }
        }
        for (int c = 0; c < kChannels; ++c) Store(line + c * line_stride + first, picked[c]);
      }
    }
  }
}

template <typename T, typename A = Accumulate<T>>
inline void WriteLine(const A* line, int64_t bins, T* out, int64_t stride) {
  if (stride != 1) {
    for (int64_t i = 0; i < bins; ++i) out[i * stride] = T(line[i]);
    return;
  }
  int64_t i = 0;
  for (; i + kLanes<A> <= bins; i += kLanes<A>) Store(out + i, Load(line + i));
  if (i < bins) StorePart(out + i, Load(line + i), bins - i);
}

template <int kChannels, int kChunks, Reading kReading, typename T, typename A = Accumulate<T>>
inline void PoolChannelLines(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map,
                             const T* limit, int64_t channel_stride, const RoiTarget<T>& out, A* scratch) {
  const int64_t bins = outer[0].bins * outer[1].bins * columns.bins;
  PoolLines<kChannels, kChunks, kReading>(outer, columns, map, limit, channel_stride, scratch,
                                          scratch + kRoiChannels * LineOf(bins));
  for (int c = 0; c < kChannels; ++c) {
    WriteLine(scratch + c * LineOf(bins), bins, out.data + c * out.channel_stride, out.bin_stride);
  }
}

template <int kChunks, Reading kReading, typename T, typename A = Accumulate<T>>
void PoolEachChannel(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                     int64_t channels, int64_t channel_stride, RoiTarget<T> out, A* scratch) {
  const auto step = [&](int64_t count) {
    channels -= count;
    map += count * channel_stride;
    out.data += count * out.channel_stride;
  };
  while (channels >= kRoiChannels) {
    PoolChannelLines<kRoiChannels, kChunks, kReading>(outer, columns, map, limit, channel_stride, out,
                                                      scratch);
    step(kRoiChannels);
  }
  while (channels > 0) {
    PoolChannelLines<1, kChunks, kReading>(outer, columns, map, limit, channel_stride, out, scratch);
    step(1);
  }
}

template <Reading kReading, typename T, typename A = Accumulate<T>>
void PoolAdjacent(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                  int64_t channels, int64_t channel_stride, const RoiTarget<T>& out, A* scratch) {
  const auto run = [&](auto* pool) {
    pool(outer, columns, map, limit, channels, channel_stride, out, scratch);
  };
#if SACCADE_VECTOR_BYTES > 16  // narrower vectors have no shuffle by a variable
  if constexpr (sizeof(A) == sizeof(float)) {
    if (columns.chunks == 1) return run(PoolEachChannel<1, kReading, T>);
    if (columns.chunks == 2) return run(PoolEachChannel<2, kReading, T>);
  }
#endif
  run(PoolEachChannel<0, kReading, T>);
}

template <typename T, typename A = Accumulate<T>>
void AlongColumns(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                  int64_t channels, int64_t channel_stride, const RoiTarget<T>& out, A* scratch) {
  const auto run = [&](auto* pool) {
    pool(outer, columns, map, limit, channels, channel_stride, out, scratch);
  };
  if (columns.pixel_stride != 1) return run(PoolEachChannel<0, Reading::kStrided, T>);
  const bool inside = limit - map >= (channels - 1) * channel_stride + columns.reach + kLanes<A>;
  inside ? run(PoolAdjacent<Reading::kVectors, T>) : run(PoolAdjacent<Reading::kParts, T>);
}

template <typename T>
inline constexpr RoiAlignBlockCode<T> kRoiAlignCode = {kLanes<Accumulate<T>>, AlongChannels<T>,
                                                       AlongColumns<T>};

}  // namespace saccade::kernels::SACCADE_ISA
