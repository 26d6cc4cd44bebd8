// RoIAlign on CUDA: one kernel on raw pointers, compiled by nvcc and, for the emulator, by g++. A block
// handles one region and some channels: it computes the weight of each pixel in each bin once, then every
// thread sums its own bins, of one channel or of as many as 16 bytes hold. Sums are float32, in the order of
// the pixels.
#pragma once

#include "kernels/common/device.h"
#include "kernels/roi_align/roi_align_axis.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// The argument of the kernel: the problem, and the layout of its tables in shared memory.
struct RoiAlignCuda {
  static constexpr int kThreads = 256;
  static constexpr int kLeastChannels = 32;
  static constexpr int kMaxChannels = 256;
  // As many blocks keep a large GPU busy. With more, fewer blocks compute the tables of the same region.
  static constexpr int64_t kBlocks = 512;
  static constexpr int64_t kMaxBins = int64_t{1} << 22;

  explicit RoiAlignCuda(const RoiAlignProblem& problem) : p(problem), bins(BinsOf(problem)) {
    channels = kMaxChannels;
    while (channels > kLeastChannels && p.regions * ChannelBlocks() < kBlocks) channels /= 2;
    words = 0;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      begin[d] = static_cast<int>(words);
      words += p.pooled[d] + 1;
      int64_t size = 0;
      for (int l = 0; l < p.levels; ++l) {
        size = p.level[l].extent.size[d] > size ? p.level[l].extent.size[d] : size;
      }
      // Neighbouring bins share at most the pixels at their ends.
      int64_t taps = size + 3 * p.pooled[d];
      if (p.sampling_ratio > 0 && 2 * p.sampling_ratio * p.pooled[d] < taps) {
        taps = 2 * p.sampling_ratio * p.pooled[d];
      }
      pixel[d] = static_cast<int>(words);
      weight[d] = static_cast<int>(words + taps);
      words += 2 * taps;
    }
  }

  // Returns true if the tables fit in the shared memory that every device offers by default, which limits
  // images and bins, and the bins of a block's channels can be counted in 32 bits.
  bool Fits() const { return words <= 40 * 1024 / 4 && bins <= kMaxBins; }

  int64_t ChannelBlocks() const { return (p.channels + channels - 1) / channels; }

  RoiAlignProblem p;
  int64_t bins;  // of a region
  int channels;  // per block
  // Offsets in shared memory, in words, of the three arrays that roi_align_blocks.h calls RoiTaps.
  int begin[kMaxSpatialDims], pixel[kMaxSpatialDims], weight[kMaxSpatialDims];
  int64_t words;
};

enum class RoiState { kPooled, kZero, kNotANumber };

// Returns whether the region can be pooled; if so, sets its level.
__device__ inline RoiState RoiStateOf(const RoiAlignProblem& p, int64_t region, int64_t* level) {
  const float* roi = static_cast<const float*>(p.rois) + region * NumbersPerRegion(p);
  for (int64_t i = 0; i < NumbersPerRegion(p); ++i) {
    if (!(roi[i] - roi[i] == 0)) return RoiState::kNotANumber;
  }
  if (!(roi[0] >= 0 && roi[0] < static_cast<float>(p.batch))) return RoiState::kNotANumber;
  *level = p.level_of == nullptr ? 0 : p.level_of[region];
  return *level >= 0 && *level < p.levels ? RoiState::kPooled : RoiState::kZero;
}

// Fills the tables of all axes. Every thread of the block must call it; ends with a barrier.
__device__ inline void RoiTables(const RoiAlignCuda& run, const RoiAlignLevel& level, int64_t region,
                                 int32_t* shared) {
  const RoiAlignProblem& p = run.p;
  const int64_t bins = p.pooled[0] + p.pooled[1] + p.pooled[2];
  // The first pass counts the taps of each bin and computes where they begin; the second writes them.
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = threadIdx.x; i < bins; i += RoiAlignCuda::kThreads) {
      const int d = i < p.pooled[0] ? 0 : i < p.pooled[0] + p.pooled[1] ? 1 : 2;
      const int64_t bin = i - (d > 0 ? p.pooled[0] : 0) - (d > 1 ? p.pooled[1] : 0);
      int32_t* begin = shared + run.begin[d];
      int32_t* pixels = shared + run.pixel[d];
      auto* weights = reinterpret_cast<float*>(shared + run.weight[d]);
      int32_t at = pass == 0 ? 0 : begin[bin];
      RoiAxisOf<float>(p, level, region, d).ForTaps(bin, [&](int64_t pixel, float weight) {
        if (pass == 1) {
          pixels[at] = static_cast<int32_t>(pixel);
          weights[at] = weight;
        }
        ++at;
      });
      if (pass == 0) begin[bin + 1] = at;
    }
    __syncthreads();
    if (pass == 0 && threadIdx.x < kMaxSpatialDims) {
      int32_t* begin = shared + run.begin[threadIdx.x];
      begin[0] = 0;
      for (int64_t bin = 0; bin < p.pooled[threadIdx.x]; ++bin) begin[bin + 1] += begin[bin];
    }
    __syncthreads();
  }
}

// Sums one bin of kCount channels, which lie beside each other if kAdjacent, into `sum`.
template <int kCount, bool kAdjacent, typename T>
__device__ void RoiBin(const RoiAlignCuda& run, const int32_t* shared, const FeatureMap& map,
                       const T* channel, uint32_t bin, float* sum) {
  const auto rows = static_cast<uint32_t>(run.p.pooled[1]), columns = static_cast<uint32_t>(run.p.pooled[2]);
  const uint32_t of_axis[kMaxSpatialDims] = {bin / columns / rows, bin / columns % rows, bin % columns};
  const int32_t* begin[kMaxSpatialDims];
  const int32_t* pixel[kMaxSpatialDims];
  const float* weight[kMaxSpatialDims];
  for (int d = 0; d < kMaxSpatialDims; ++d) {
    begin[d] = shared + run.begin[d] + of_axis[d];
    pixel[d] = shared + run.pixel[d];
    weight[d] = reinterpret_cast<const float*>(shared + run.weight[d]);
  }
  SACCADE_UNROLL
  for (int k = 0; k < kCount; ++k) sum[k] = 0;
  for (int32_t t = begin[0][0]; t < begin[0][1]; ++t) {
    for (int32_t y = begin[1][0]; y < begin[1][1]; ++y) {
      const T* row = channel + pixel[0][t] * map.spatial_stride[0] + pixel[1][y] * map.spatial_stride[1];
      const float row_weight = weight[0][t] * weight[1][y];
      for (int32_t x = begin[2][0]; x < begin[2][1]; ++x) {
        const float pixel_weight = row_weight * weight[2][x];
        const T* first = row + pixel[2][x] * map.spatial_stride[2];
        Neighbours<T, kCount> values;
        if (kAdjacent) {
          values = *reinterpret_cast<const Neighbours<T, kCount>*>(first);
        } else {
          SACCADE_UNROLL
          for (int k = 0; k < kCount; ++k) values.of[k] = first[k * map.channel_stride];
        }
        SACCADE_UNROLL
        for (int k = 0; k < kCount; ++k) sum[k] += pixel_weight * ToFloat(values.of[k]);
      }
    }
  }
}

// Whether kCount channels from each kCount-th on lie beside each other, aligned, in the map and in the
// result.
template <typename T, int kCount>
__device__ bool RoiChannelsAdjacent(const RoiAlignProblem& p, const FeatureMap& map) {
  const auto aligned = [](const void* data) {
    return reinterpret_cast<uintptr_t>(data) % sizeof(Neighbours<T, kCount>) == 0;
  };
  bool strides = map.batch_stride % kCount == 0;
  for (int d = 0; d < kMaxSpatialDims; ++d) strides = strides && map.spatial_stride[d] % kCount == 0;
  return strides && map.channel_stride == 1 && p.channels_last && p.channels % kCount == 0 &&
         aligned(map.data) && aligned(p.out);
}

// What a block of RoiAlignKernel works on.
template <typename T>
struct RoiBlock {
  const FeatureMap* map;
  const T* channel;  // the first channel of the region's sample
  RoiState state;
  int64_t first;  // the number of that channel
  uint32_t channels;
};

// Pools kCount channels at a time. The block's channels are a multiple of it.
template <int kCount, bool kAdjacent, typename T>
__device__ void RoiPool(const RoiAlignCuda& run, const int32_t* shared, const RoiBlock<T>& block) {
  const RoiAlignProblem& p = run.p;
  const auto bins = static_cast<uint32_t>(run.bins);
  const uint32_t groups = block.channels / kCount;
  T* out = static_cast<T*>(p.out) + static_cast<int64_t>(blockIdx.x) * p.channels * bins;
  const bool channels_adjacent = block.map->channel_stride == 1;
  for (uint32_t i = threadIdx.x; i < groups * bins; i += RoiAlignCuda::kThreads) {
    const uint32_t channel = (channels_adjacent ? i % groups : i / bins) * kCount;
    const uint32_t bin = channels_adjacent ? i / groups : i % bins;
    float sum[kCount];
    if (block.state == RoiState::kPooled) {
      RoiBin<kCount, kAdjacent>(run, shared, *block.map, block.channel + channel * block.map->channel_stride,
                                bin, sum);
    } else {
      const float value = block.state == RoiState::kNotANumber ? nanf("") : 0;
      for (int k = 0; k < kCount; ++k) sum[k] = value;
    }
    const int64_t at = block.first + channel;
    T* to = out + (p.channels_last ? bin * p.channels + at : at * bins + bin);
    if (kAdjacent) {
      Neighbours<T, kCount> values;
      SACCADE_UNROLL
      for (int k = 0; k < kCount; ++k) FromFloat(sum[k], &values.of[k]);
      *reinterpret_cast<Neighbours<T, kCount>*>(to) = values;
    } else {
      SACCADE_UNROLL
      for (int k = 0; k < kCount; ++k) FromFloat(sum[k], to + k * (p.channels_last ? 1 : run.bins));
    }
  }
}

// grid (regions, channels / run.channels), with dynamic shared memory for run.words. Neighbouring threads
// handle neighbouring channels if those are adjacent in memory, otherwise neighbouring bins.
template <typename T>
__global__ void __launch_bounds__(RoiAlignCuda::kThreads) RoiAlignKernel(RoiAlignCuda run) {
  constexpr int kAdjacent = kIn16Bytes<T>;
  constexpr int kTogether = 4;  // channels for which a thread reads the tables once
  SACCADE_DYNAMIC_SHARED(int32_t, shared);
  const RoiAlignProblem& p = run.p;
  const int64_t region = blockIdx.x;
  int64_t l = 0;
  RoiBlock<T> block;
  block.state = RoiStateOf(p, region, &l);
  const RoiAlignLevel& level = p.level[block.state == RoiState::kPooled ? l : 0];
  block.map = &level.map;
  block.first = static_cast<int64_t>(blockIdx.y) * run.channels;
  const int64_t left = p.channels - block.first;
  block.channels = static_cast<uint32_t>(left < run.channels ? left : run.channels);
  block.channel = static_cast<const T*>(level.map.data) + block.first * level.map.channel_stride;
  if (block.state == RoiState::kPooled) {
    RoiTables(run, level, region, shared);
    block.channel += static_cast<int64_t>(static_cast<const float*>(p.rois)[region * NumbersPerRegion(p)]) *
                     level.map.batch_stride;
  }
  if (RoiChannelsAdjacent<T, kAdjacent>(p, level.map)) {
    RoiPool<kAdjacent, true>(run, shared, block);
  } else if (block.channels % kTogether == 0) {
    RoiPool<kTogether, false>(run, shared, block);
  } else {
    RoiPool<1, false>(run, shared, block);
  }
}

inline bool RoiAlignCudaFits(const RoiAlignProblem& p) {
  const RoiAlignCuda run(p);
  return run.Fits() && p.regions <= 0x7fffffff && run.ChannelBlocks() <= 65535;
}

// Calls launch(kernel, grid.x, grid.y, threads, dynamic shared bytes, run).
template <typename T, typename Launch>
void RunRoiAlignCuda(const RoiAlignProblem& p, const Launch& launch) {
  const RoiAlignCuda run(p);
  launch(RoiAlignKernel<T>, static_cast<unsigned>(p.regions), static_cast<unsigned>(run.ChannelBlocks()),
         RoiAlignCuda::kThreads, static_cast<size_t>(run.words) * 4, run);
}

}  // namespace saccade::kernels
