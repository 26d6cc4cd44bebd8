// RoIAlign on CUDA: one kernel on raw pointers, compiled by nvcc and, for the emulator, by g++. A block
// handles one region and some channels: it computes the weight of each pixel in each bin once, then every
// thread sums its own bins. Sums are float32, in the order of the pixels.
#pragma once

#include "kernels/common/device.h"
#include "kernels/roi_align/roi_align_axis.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {

// The argument of the kernel: the problem, and the layout of its tables in shared memory.
struct RoiAlignCuda {
  static constexpr int kThreads = 256;
  static constexpr int kChannels = 32;  // per block

  explicit RoiAlignCuda(const RoiAlignProblem& problem) : p(problem) {
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
  // images and bins.
  bool Fits() const { return words <= 40 * 1024 / 4; }

  RoiAlignProblem p;
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

// Returns one bin of one channel.
template <typename T>
__device__ float RoiBin(const RoiAlignCuda& run, const int32_t* shared, const FeatureMap& map,
                        const T* channel, int64_t bin) {
  const int64_t* pooled = run.p.pooled;
  const int64_t of_axis[kMaxSpatialDims] = {bin / (pooled[1] * pooled[2]), bin / pooled[2] % pooled[1],
                                            bin % pooled[2]};
  const int32_t* begin[kMaxSpatialDims];
  const int32_t* pixel[kMaxSpatialDims];
  const float* weight[kMaxSpatialDims];
  for (int d = 0; d < kMaxSpatialDims; ++d) {
    begin[d] = shared + run.begin[d] + of_axis[d];
    pixel[d] = shared + run.pixel[d];
    weight[d] = reinterpret_cast<const float*>(shared + run.weight[d]);
  }
  float sum = 0;
  for (int32_t t = begin[0][0]; t < begin[0][1]; ++t) {
    for (int32_t y = begin[1][0]; y < begin[1][1]; ++y) {
      const T* row = channel + pixel[0][t] * map.spatial_stride[0] + pixel[1][y] * map.spatial_stride[1];
      const float row_weight = weight[0][t] * weight[1][y];
      for (int32_t x = begin[2][0]; x < begin[2][1]; ++x) {
        sum += row_weight * weight[2][x] * ToFloat(row[pixel[2][x] * map.spatial_stride[2]]);
      }
    }
  }
  return sum;
}

// grid (regions, channels / kChannels), with dynamic shared memory for run.words. Neighbouring threads handle
// neighbouring channels if those are adjacent in memory, otherwise neighbouring bins.
template <typename T>
__global__ void __launch_bounds__(RoiAlignCuda::kThreads) RoiAlignKernel(RoiAlignCuda run) {
  SACCADE_DYNAMIC_SHARED(int32_t, shared);
  const RoiAlignProblem& p = run.p;
  const int64_t region = blockIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * RoiAlignCuda::kChannels;
  const int64_t left = p.channels - first;
  const int64_t channels = left < RoiAlignCuda::kChannels ? left : RoiAlignCuda::kChannels;
  const int64_t bins = p.pooled[0] * p.pooled[1] * p.pooled[2];
  int64_t l = 0;
  const RoiState state = RoiStateOf(p, region, &l);
  const RoiAlignLevel& level = p.level[state == RoiState::kPooled ? l : 0];
  const T* map = static_cast<const T*>(level.map.data) + first * level.map.channel_stride;
  if (state == RoiState::kPooled) {
    RoiTables(run, level, region, shared);
    map += static_cast<int64_t>(static_cast<const float*>(p.rois)[region * NumbersPerRegion(p)]) *
           level.map.batch_stride;
  }
  T* out = static_cast<T*>(p.out) + region * p.channels * bins;
  const bool channels_adjacent = level.map.channel_stride == 1;
  for (int64_t i = threadIdx.x; i < channels * bins; i += RoiAlignCuda::kThreads) {
    const int64_t channel = channels_adjacent ? i % channels : i / bins;
    const int64_t bin = channels_adjacent ? i / channels : i % bins;
    float value = 0;
    if (state == RoiState::kPooled) {
      value = RoiBin<T>(run, shared, level.map, map + channel * level.map.channel_stride, bin);
    } else if (state == RoiState::kNotANumber) {
      value = nanf("");
    }
    FromFloat(value,
              out + (p.channels_last ? bin * p.channels + first + channel : (first + channel) * bins + bin));
  }
}

inline bool RoiAlignCudaFits(const RoiAlignProblem& p) {
  return RoiAlignCuda(p).Fits() && p.regions <= 0x7fffffff && p.channels <= 65535 * RoiAlignCuda::kChannels;
}

// Calls launch(kernel, grid.x, grid.y, threads, dynamic shared bytes, run).
template <typename T, typename Launch>
void RunRoiAlignCuda(const RoiAlignProblem& p, const Launch& launch) {
  const RoiAlignCuda run(p);
  const auto blocks =
      static_cast<unsigned>((p.channels + RoiAlignCuda::kChannels - 1) / RoiAlignCuda::kChannels);
  launch(RoiAlignKernel<T>, static_cast<unsigned>(p.regions), blocks, RoiAlignCuda::kThreads,
         static_cast<size_t>(run.words) * 4, run);
}

}  // namespace saccade::kernels
