// The layout in which the kernels of global self-attention exchange maps, its vector loads and stores, and
// the kernel that copies a map of any strides into it.
#pragma once

#include <type_traits>

#include "kernels/common/device.h"
#include "kernels/common/feature_map.h"
#include "kernels/device/box.cuh"
#include "kernels/device/mma.cuh"

namespace saccade::kernels {

inline constexpr int kGsaThreads = 256;  // of every block
inline constexpr int kGsaVector = 8;     // channels of a vector

// A map in the workspace, [B, heads, positions, stride] in the maps' type. All vectors are aligned to 16
// bytes.
struct GsaRows {
  static int64_t StrideOf(int64_t channels) { return (channels + kGsaVector - 1) / kGsaVector * kGsaVector; }
  template <typename T>
  __device__ T* Row(int64_t matrix, int64_t position) const {
    return static_cast<T*>(data) + (matrix * positions + position) * stride;
  }

  void* data = nullptr;
  int positions = 0;
  int channels = 0;  // per head
  int stride = 0;    // channels rounded up to whole vectors; the channels beyond are zero
};

// 16 bytes, loaded and stored at once.
struct alignas(16) GsaWords {
  uint32_t at[4];
};

// `from` and `to` are aligned to 16 bytes.
template <typename E>
__device__ inline GsaWords LoadWords(const E* from) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const GsaWords*>(from);
#else
  GsaWords words;
  __builtin_memcpy(&words, from, sizeof(words));
  return words;
#endif
}
template <typename E>
__device__ inline void StoreWords(const GsaWords& words, E* to) {
#if defined(__CUDACC__)
  *reinterpret_cast<GsaWords*>(to) = words;
#else
  __builtin_memcpy(to, &words, sizeof(words));
#endif
}

template <typename E>
__device__ inline void UnpackPair(uint32_t word, float& first, float& second) {
  E pair[2];
  __builtin_memcpy(pair, &word, sizeof(word));
  first = ToFloat(pair[0]);
  second = ToFloat(pair[1]);
}

// Four neighbouring elements as floats; `from` and `to` are aligned to their size.
__device__ inline void LoadFour(const float* from, float (&four)[4]) {
  const GsaWords words = LoadWords(from);
  __builtin_memcpy(four, words.at, sizeof(four));
}
template <typename E>
__device__ inline void LoadFour(const E* from, float (&four)[4]) {
  UnpackPair<E>(LoadPair(from), four[0], four[1]);
  UnpackPair<E>(LoadPair(from + 2), four[2], four[3]);
}
__device__ inline void StoreFour(const float (&four)[4], float* to) {
  GsaWords words;
  __builtin_memcpy(words.at, four, sizeof(four));
  StoreWords(words, to);
}
template <typename E>
__device__ inline void StoreFour(const float (&four)[4], E* to) {
  StorePair(RoundPair(four[0], four[1], E()), to);
  StorePair(RoundPair(four[2], four[3], E()), to + 2);
}

// A vector of channels as floats.
__device__ inline void LoadVector(const float* from, float (&vector)[kGsaVector]) {
  const GsaWords low = LoadWords(from);
  const GsaWords high = LoadWords(from + 4);
  __builtin_memcpy(vector, low.at, sizeof(low.at));
  __builtin_memcpy(vector + 4, high.at, sizeof(high.at));
}
template <typename E>
__device__ inline void LoadVector(const E* from, float (&vector)[kGsaVector]) {
  const GsaWords words = LoadWords(from);
  SACCADE_UNROLL
  for (int i = 0; i < 4; ++i) UnpackPair<E>(words.at[i], vector[2 * i], vector[2 * i + 1]);
}

// Turns two rows of four words around: `pairs[i]` holds the i-th elements of both rows.
__device__ inline void InterleaveRows(const GsaWords& first, const GsaWords& second,
                                      uint32_t (&pairs)[kGsaVector]) {
  SACCADE_UNROLL
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = (first.at[i] & 0xffffu) | second.at[i] << 16;
    pairs[2 * i + 1] = first.at[i] >> 16 | (second.at[i] & 0xffff0000u);
  }
}

// Returns true if the position lies within the sample's valid extent.
__device__ inline bool IsValid(const DeviceBox& box, int position) {
  return position / box.full[2] < box.size[1] && position % box.full[2] < box.size[2];
}

// A copy of a map into the layout above, with zeros in the padding. A thread copies one vector.
struct GsaPack {
  int64_t Vectors() const { return rows.stride / kGsaVector; }
  int64_t PositionBlocks() const { return (rows.positions + kGsaThreads - 1) / kGsaThreads; }
  int64_t Blocks() const { return batch * heads * Vectors() * PositionBlocks(); }

  FeatureMap map;
  GsaRows rows;
  Extent extent;
  int64_t batch, heads;
  int vectors, position_blocks;
};

template <typename T>
__global__ void __launch_bounds__(kGsaThreads) GsaPackKernel(GsaPack run) {
  unsigned block = blockIdx.x;
  const int position = static_cast<int>(block % run.position_blocks * kGsaThreads + threadIdx.x);
  block /= run.position_blocks;
  const int first = static_cast<int>(block % run.vectors) * kGsaVector;
  const int64_t matrix = block / run.vectors;
  if (position >= run.rows.positions) return;
  const int64_t sample = matrix / run.heads;
  const bool valid = IsValid(DeviceBox(run.extent, sample), position);
  const int width = static_cast<int>(run.extent.size[2]);
  const T* from = static_cast<const T*>(run.map.data) + sample * run.map.batch_stride +
                  (matrix % run.heads * run.rows.channels + first) * run.map.channel_stride +
                  position / width * run.map.spatial_stride[1] + position % width * run.map.spatial_stride[2];
  alignas(16) T vector[kGsaVector];
  SACCADE_UNROLL
  for (int c = 0; c < kGsaVector; ++c) {
    vector[c] = valid && first + c < run.rows.channels ? from[c * run.map.channel_stride] : T(0.0f);
  }
  T* const to = run.rows.Row<T>(matrix, position) + first;
  constexpr int kPerStore = 16 / sizeof(T);
  SACCADE_UNROLL
  for (int c = 0; c < kGsaVector; c += kPerStore) {
    GsaWords words;
    __builtin_memcpy(words.at, vector + c, sizeof(words.at));
    StoreWords(words, to + c);
  }
}

}  // namespace saccade::kernels
