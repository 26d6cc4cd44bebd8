// Tiles of 64 positions of a map in shared memory, for the kernels of efficient attention that keep
// all channels of a tile there: their memory, their copies, and the fragments of mma.cuh that are read from
// them.
//
// A tile is stored as the map is, so that 16-byte copies fill it: a row is a channel, or for channels-last
// maps a position. Positions are numbered among the sample's valid ones. A tile has the same elements
// whatever the map's strides, alignment and padding; these only decide how the elements are copied.
#pragma once

#include "kernels/device/attend_problem.h"
#include "kernels/device/box.cuh"
#include "kernels/device/copy_async.cuh"
#include "kernels/device/mma.cuh"

namespace saccade::kernels {

inline constexpr int kEaTile = 64;          // positions of a tile
inline constexpr int kEaKeys = 64;          // maximum number of key channels; a block pads to it with zeros
inline constexpr int kEaMaxChannels = 256;  // of a tile

// Threads of a block: four warps have enough work with tensor cores.
template <typename T>
inline constexpr int kEaThreads = sizeof(T) == 2 ? 128 : 256;
// Elements of a 16-byte copy, and at the end of a row, where they avoid bank conflicts.
template <typename T>
inline constexpr int kEaChunk = 16 / sizeof(T);
// Elements of a row of keys.
template <typename T>
inline constexpr int kEaKeyRow = kEaKeys + kEaChunk<T>;
// Channels of a step of a wide map's logits, and elements of a row of them.
inline constexpr int kEaSlice = 64;
template <typename T>
inline constexpr int kEaSliceRow = kEaSlice + kEaChunk<T>;

// A map of one sample, and where its positions lie.
struct EaMap {
  __device__ EaMap(const void* data, int64_t channel_stride_, const int64_t (&stride_)[kMaxSpatialDims],
                   const DeviceBox& box_, int count_, int channels_)
      : first(data), channel_stride(channel_stride_), box(box_), count(count_), channels(channels_) {
    for (int d = 0; d < kMaxSpatialDims; ++d) stride[d] = stride_[d];
    // Numbers times one stride are then the offsets, without divisions. If the box has one line, the stride
    // of lines says nothing of its width, so both strides are compared with the width.
    dense = (box.size[1] == 1 || stride[1] == box.size[2] * stride[2]) &&
            (box.size[0] == 1 || stride[0] == static_cast<int64_t>(box.size[1]) * box.size[2] * stride[2]);
  }
  __device__ int64_t OffsetOf(int number) const {
    return dense ? number * stride[2] : box.OffsetOf(number, stride);
  }

  const void* first;  // first channel of the first position
  int64_t channel_stride;
  int64_t stride[kMaxSpatialDims];
  const DeviceBox& box;
  int count;  // valid positions
  int channels;
  bool dense;
};

// The map of one sample whose valid positions are `box`.
template <typename T, typename Void>
__device__ EaMap EaMapOf(const BasicFeatureMap<Void>& map, int sample, const DeviceBox& box,
                         int64_t channels) {
  return EaMap(static_cast<const T*>(map.data) + sample * map.batch_stride, map.channel_stride,
               map.spatial_stride, box, box.Positions(), static_cast<int>(channels));
}

// The part of a map that has the `channels` channels from `first` on, or fewer at its end.
template <typename T>
__device__ EaMap EaChannelsOf(const EaMap& map, int first, int channels) {
  EaMap part = map;
  part.first = static_cast<const T*>(map.first) + first * map.channel_stride;
  part.channels = map.channels - first < channels ? map.channels - first : channels;
  return part;
}

// A tile of kChannels channels, those beyond the map's being zero.
template <typename T, int kChannels, bool kChannelsLast>
struct EaTile {
  static constexpr int kChunk = kEaChunk<T>;
  static constexpr int kRows = kChannelsLast ? kEaTile : kChannels;
  static constexpr int kColumns = kChannelsLast ? kChannels : kEaTile;
  static constexpr int kStride = kColumns + kChunk;
  static constexpr int kElements = kRows * kStride;
  // The thread's chunks are at (thread / kAcross + i * kStep, thread % kAcross).
  static constexpr int kAcross = kColumns / kChunk;
  static constexpr int kStep = kEaThreads<T> / kAcross;
  static constexpr int kChunks = kRows / kStep;

  __device__ static int Index(int position, int channel) {
    return kChannelsLast ? position * kStride + channel : channel * kStride + position;
  }

  // Starts to copy the tile whose first position is `first`. The thread has to wait for its copies, and the
  // block for its threads.
  __device__ static void Fetch(const EaMap& map, int first, T* tile) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / kAcross;
    const int column = thread % kAcross * kChunk;
    T* const to = tile + row * kStride + column;
    if constexpr (kChannelsLast) {
      const bool whole = column + kChunk <= map.channels && map.channel_stride == 1;
      SACCADE_UNROLL_BY(4)
      for (int i = 0; i < kChunks; ++i) {
        const int number = first + row + i * kStep;
        const bool there = number < map.count && column < map.channels;
        const T* const from = There(map, there ? map.OffsetOf(number) + column * map.channel_stride : 0);
        if (!there || (whole && Aligned(from))) {
          CopyAsync16(to + i * kStep * kStride, there ? from : static_cast<const T*>(map.first), there);
        } else {
          for (int e = 0; e < kChunk; ++e) {
            to[i * kStep * kStride + e] = column + e < map.channels ? from[e * map.channel_stride] : T(0.0f);
          }
        }
      }
    } else {
      const int number = first + column;
      const int64_t offset = number < map.count ? map.OffsetOf(number) : 0;
      if (number >= map.count || Whole(map, number, offset)) {
        const T* from = There(map, offset + row * map.channel_stride);
        SACCADE_UNROLL_BY(4)
        for (int i = 0; i < kChunks; ++i) {
          const bool there = number < map.count && row + i * kStep < map.channels;
          CopyAsync16(to + i * kStep * kStride, there ? from : static_cast<const T*>(map.first), there);
          from += kStep * map.channel_stride;
        }
      } else {
        SACCADE_UNROLL_BY(1)
        for (int e = 0; e < kChunk; ++e) {
          const bool exists = number + e < map.count;
          const T* const from = There(map, exists ? map.OffsetOf(number + e) : 0);
          SACCADE_UNROLL_BY(4)
          for (int i = 0; i < kChunks; ++i) {
            const int channel = row + i * kStep;
            to[i * kStep * kStride + e] =
                exists && channel < map.channels ? from[channel * map.channel_stride] : T(0.0f);
          }
        }
      }
    }
  }

  // Stores a tile. A thread reads exactly the chunks that it writes in Fetch(), so a fetch may follow.
  __device__ static void Store(const EaMap& map, int first, const T* tile) {
    const int thread = static_cast<int>(threadIdx.x);
    const int row = thread / kAcross;
    const int column = thread % kAcross * kChunk;
    const T* const from = tile + row * kStride + column;
    if constexpr (kChannelsLast) {
      const bool whole = column + kChunk <= map.channels && map.channel_stride == 1;
      SACCADE_UNROLL_BY(4)
      for (int i = 0; i < kChunks; ++i) {
        const int number = first + row + i * kStep;
        if (number >= map.count || column >= map.channels) continue;
        T* const to = const_cast<T*>(There(map, map.OffsetOf(number) + column * map.channel_stride));
        StoreChunk(from + i * kStep * kStride, to, whole && Aligned(to), map.channel_stride,
                   map.channels - column);
      }
    } else {
      const int number = first + column;
      if (number >= map.count) return;
      const int64_t offset = map.OffsetOf(number);
      if (Whole(map, number, offset)) {
        T* to = const_cast<T*>(There(map, offset + row * map.channel_stride));
        SACCADE_UNROLL_BY(4)
        for (int i = 0; i < kChunks; ++i) {
          if (row + i * kStep < map.channels) {
            *reinterpret_cast<Vector16*>(to) = *reinterpret_cast<const Vector16*>(from + i * kStep * kStride);
          }
          to += kStep * map.channel_stride;
        }
        return;
      }
      SACCADE_UNROLL_BY(1)
      for (int e = 0; e < kChunk && number + e < map.count; ++e) {
        T* const to = const_cast<T*>(There(map, map.OffsetOf(number + e)));
        SACCADE_UNROLL_BY(4)
        for (int i = 0; i < kChunks; ++i) {
          const int channel = row + i * kStep;
          if (channel < map.channels) to[channel * map.channel_stride] = from[i * kStep * kStride + e];
        }
      }
    }
  }

  // The fragments of B = [k][n] for 16 k and 16 n: to[0..1] for the first 8 n, to[2..3] for the others. k
  // counts channels and n positions (kChannelsFirst), or the reverse.
  template <bool kChannelsAreK>
  __device__ static void LoadRight(const T* tile, int k, int n, uint32_t (&to)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int matrix = lane / 8;
    constexpr bool kTransposed = kChannelsAreK != kChannelsLast;
    // A row of memory counts k if transposed, else n.
    const int row = kTransposed ? k + matrix % 2 * 8 + lane % 8 : n + matrix / 2 * 8 + lane % 8;
    const int column = kTransposed ? n + matrix / 2 * 8 : k + matrix % 2 * 8;
    LoadMatrices<kTransposed>(tile + row * kStride + column, to);
  }

  // The fragment of A = [position][channel] for 16 of each.
  __device__ static void LoadLeft(const T* tile, int position, int channel, uint32_t (&to)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int matrix = lane / 8;
    const int row =
        kChannelsLast ? position + matrix % 2 * 8 + lane % 8 : channel + matrix / 2 * 8 + lane % 8;
    const int column = kChannelsLast ? channel + matrix / 2 * 8 : position + matrix % 2 * 8;
    LoadMatrices<!kChannelsLast>(tile + row * kStride + column, to);
  }

 private:
  __device__ static const T* There(const EaMap& map, int64_t offset) {
    return static_cast<const T*>(map.first) + offset;
  }
  __device__ static bool Aligned(const T* at) {
    return reinterpret_cast<uintptr_t>(at) % sizeof(Vector16) == 0;
  }

  // True if the 8 positions from `number` are 16 aligned bytes in every channel.
  __device__ static bool Whole(const EaMap& map, int number, int64_t offset) {
    return number + kChunk <= map.count && map.stride[2] == 1 && map.channel_stride % kChunk == 0 &&
           Aligned(There(map, offset)) && (map.dense || number % map.box.size[2] + kChunk <= map.box.size[2]);
  }

  __device__ static void StoreChunk(const T* from, T* to, bool whole, int64_t stride, int count) {
    if (whole) {
      *reinterpret_cast<Vector16*>(to) = *reinterpret_cast<const Vector16*>(from);
      return;
    }
    for (int e = 0; e < kChunk && e < count; ++e) to[e * stride] = from[e];
  }
};

// The fragment of A = [row][column], or the fragments of B = [column][row] for two groups of 8 rows, for 16
// rows and columns of a matrix in shared memory.
template <typename T>
__device__ void LoadMatrixLeft(const T* matrix, int stride, int row, int column, uint32_t (&to)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  LoadMatrices<false>(matrix + (row + lane % 16) * stride + column + lane / 16 * 8, to);
}
template <typename T>
__device__ void LoadMatrixRight(const T* matrix, int stride, int row, int column, uint32_t (&to)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  LoadMatrices<false>(matrix + (row + lane / 16 * 8 + lane % 8) * stride + column + lane / 8 % 2 * 8, to);
}

template <int kGroups>
__device__ void EaClear(float (&sums)[kGroups][4]) {
  SACCADE_UNROLL
  for (int n = 0; n < kGroups; ++n) {
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) sums[n][i] = 0;
  }
}

// sums[0..1] += A B, for the two groups of 8 columns in `right`.
template <typename T>
__device__ void MmaPair(float (&first)[4], float (&second)[4], const uint32_t (&left)[4],
                        const uint32_t (&right)[4]) {
  const uint32_t low[2] = {right[0], right[1]};
  const uint32_t high[2] = {right[2], right[3]};
  Mma(first, left, low, T());
  Mma(second, left, high, T());
}

}  // namespace saccade::kernels
