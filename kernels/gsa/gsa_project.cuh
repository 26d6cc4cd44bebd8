// The kernel of the module's 1x1 convolutions: queries, keys and values of all heads in one launch.
#pragma once

#include "kernels/gsa/gsa_rows.cuh"

namespace saccade::kernels {

// One of the convolutions.
struct GsaConvolution {
  const float* weight;  // [heads * rows.channels, channels of x]
  const float* bias;    // or null
  GsaRows rows;         // the result
  int tiles;            // of kOutputs channels, the heads' padding included
};

// One call, as passed to the kernel. A block computes kPositions x kOutputs results.
struct GsaProjection {
  static constexpr int kPositions = 128;
  static constexpr int kOutputs = 64;

  int64_t Blocks() const { return batch * position_tiles * output_tiles; }

  FeatureMap x;
  Extent extent;
  int64_t batch;
  int channels, heads;
  int position_tiles, output_tiles;
  GsaConvolution convolutions[3];
  bool flat;              // positions of x are equally far apart
  bool position_vectors;  // positions of x are adjacent and can be loaded 16 bytes at a time
  bool channel_vectors;   // same for channels
  bool weight_vectors;    // same for the weights of an output
};

// What a block computes.
struct GsaProjectionPlace {
  __device__ explicit GsaProjectionPlace(const GsaProjection& run) : convolution(run.convolutions[0]) {
    unsigned block = blockIdx.x;
    int tile = static_cast<int>(block % run.output_tiles);
    block /= run.output_tiles;
    first_position = static_cast<int>(block % run.position_tiles) * GsaProjection::kPositions;
    sample = block / run.position_tiles;
    for (int i = 1; i < 3; ++i) {
      if (tile < convolution.tiles) break;
      tile -= convolution.tiles;
      convolution = run.convolutions[i];
    }
    first_output = tile * GsaProjection::kOutputs;
  }
  // Returns the row of the weights of an output of the tile, or -1 if it is padding of a head.
  __device__ int WeightRow(const GsaProjection& run, int output) const {
    const int head = (first_output + output) / convolution.rows.stride;
    const int channel = (first_output + output) % convolution.rows.stride;
    return head < run.heads && channel < convolution.rows.channels
               ? head * convolution.rows.channels + channel
               : -1;
  }
  GsaConvolution convolution;
  int first_position, first_output;
  int64_t sample;
};

// Four weights of an output from channel c on; zeros past the end.
__device__ inline void LoadWeights(const GsaProjection& run, const GsaProjectionPlace& place, int row, int c,
                                   float (&four)[4]) {
  const float* from = place.convolution.weight + static_cast<int64_t>(row) * run.channels + c;
  if (row >= 0 && run.weight_vectors && c < run.channels) {
    LoadFour(from, four);
    return;
  }
  SACCADE_UNROLL
  for (int i = 0; i < 4; ++i) four[i] = row >= 0 && c + i < run.channels ? from[i] : 0.0f;
}

template <typename T>
__device__ const T* SampleOf(const GsaProjection& run, int64_t sample) {
  return static_cast<const T*>(run.x.data) + sample * run.x.batch_stride;
}

// One element of x; zero past the end of the positions or channels.
template <typename T>
__device__ T LoadX(const GsaProjection& run, const T* x, int positions, int position, int c) {
  if (position >= positions || c >= run.channels) return T(0.0f);
  const auto width = static_cast<int>(run.extent.size[2]);
  const int64_t at =
      run.flat ? position * run.x.spatial_stride[2]
               : position / width * run.x.spatial_stride[1] + position % width * run.x.spatial_stride[2];
  return x[at + c * run.x.channel_stride];
}

// Tensor-core arithmetic. Tiles in shared memory hold words of two channels, kStride words apart per row, so
// that a fragment's words are in different banks. A warp computes 32 x 32 results.
template <typename T>
struct GsaProjectWithMma {
  static constexpr int kDepth = 64;  // channels of x per step
  static constexpr int kStride = kDepth / 2 + 4;

  __device__ static void FillX(const GsaProjection& run, const GsaProjectionPlace& place, int first_channel,
                               uint32_t* tile) {
    const T* const x = SampleOf<T>(run, place.sample);
    const int positions = place.convolution.rows.positions;
    if (run.channel_vectors) {
      SACCADE_UNROLL
      for (int i = 0; i < GsaProjection::kPositions * kDepth / 8 / kGsaThreads; ++i) {
        const int unit = static_cast<int>(threadIdx.x) + i * kGsaThreads;
        const int row = unit / (kDepth / 8);
        const int c = unit % (kDepth / 8) * 8;
        const int position = place.first_position + row;
        GsaWords words = {};
        if (position < positions && first_channel + c < run.channels) {
          words = LoadWords(x + position * run.x.spatial_stride[2] + first_channel + c);
        }
        StoreWords(words, tile + row * kStride + c / 2);
      }
      return;
    }
    SACCADE_UNROLL
    for (int i = 0; i < GsaProjection::kPositions * kDepth / 16 / kGsaThreads; ++i) {
      // Two channels of eight positions. Neighbouring threads read a sector of 16 positions.
      const int unit = static_cast<int>(threadIdx.x) + i * kGsaThreads;
      const int row = (unit / 32 % 8 * 2 + unit % 2) * 8;
      const int pair = unit / 256 * 16 + unit / 2 % 16;
      const int position = place.first_position + row;
      const int c = first_channel + 2 * pair;
      GsaWords rows[2] = {};
      if (run.position_vectors) {
        SACCADE_UNROLL
        for (int j = 0; j < 2; ++j) {
          if (position < positions && c + j < run.channels) {
            rows[j] = LoadWords(x + position + (c + j) * run.x.channel_stride);
          }
        }
      } else {
        SACCADE_UNROLL
        for (int j = 0; j < 2; ++j) {
          T elements[8];
          SACCADE_UNROLL
          for (int p = 0; p < 8; ++p) elements[p] = LoadX(run, x, positions, position + p, c + j);
          __builtin_memcpy(rows[j].at, elements, sizeof(elements));
        }
      }
      uint32_t pairs[8];
      InterleaveRows(rows[0], rows[1], pairs);
      SACCADE_UNROLL
      for (int p = 0; p < 8; ++p) tile[(row + p) * kStride + pair] = pairs[p];
    }
  }

  __device__ static void Run(const GsaProjection& run, const GsaProjectionPlace& place) {
    SACCADE_SHARED(GsaWords, x_words, GsaProjection::kPositions * kStride / 4);
    SACCADE_SHARED(GsaWords, weight_words, GsaProjection::kOutputs * kStride / 4);
    auto* const x_tile = reinterpret_cast<uint32_t*>(x_words);
    auto* const weight_tile = reinterpret_cast<uint32_t*>(weight_words);
    const auto thread = static_cast<int>(threadIdx.x);
    const int g = thread % kWarp / 4;
    const int t = thread % 4;
    const int warp_row = thread / kWarp % 4 * 32;
    const int warp_output = thread / kWarp / 4 * 32;
    int weight_row[4];
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) weight_row[i] = place.WeightRow(run, thread / 16 + i * 16);
    float sums[2][4][4] = {};
    for (int first = 0; first < run.channels; first += kDepth) {
      if (first > 0) __syncthreads();
      FillX(run, place, first, x_tile);
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) {
        float four[4];
        LoadWeights(run, place, weight_row[i], first + thread % 16 * 4, four);
        uint32_t* const to = weight_tile + (thread / 16 + i * 16) * kStride + thread % 16 * 2;
        to[0] = RoundPair(four[0], four[1], T());
        to[1] = RoundPair(four[2], four[3], T());
      }
      __syncthreads();
      SACCADE_UNROLL
      for (int k = 0; k < kDepth / 2; k += 8) {
        if (first + 2 * k >= run.channels) break;
        uint32_t a[2][4];
        SACCADE_UNROLL
        for (int m = 0; m < 2; ++m) {
          const uint32_t* const from = x_tile + (warp_row + m * 16 + g) * kStride + k + t;
          a[m][0] = from[0];
          a[m][1] = from[8 * kStride];
          a[m][2] = from[4];
          a[m][3] = from[8 * kStride + 4];
        }
        SACCADE_UNROLL
        for (int n = 0; n < 4; ++n) {
          const uint32_t* const from = weight_tile + (warp_output + n * 8 + g) * kStride + k + t;
          const uint32_t b[2] = {from[0], from[4]};
          SACCADE_UNROLL
          for (int m = 0; m < 2; ++m) Mma(sums[m][n], a[m], b, T());
        }
      }
    }

    const DeviceBox box(run.extent, place.sample);
    const GsaRows& rows = place.convolution.rows;
    SACCADE_UNROLL
    for (int m = 0; m < 4; ++m) {
      const int position = place.first_position + warp_row + m * 8 + g;
      if (position >= rows.positions) continue;
      const bool valid = run.extent.valid == nullptr || IsValid(box, position);
      SACCADE_UNROLL
      for (int n = 0; n < 4; ++n) {
        // A vector of outputs belongs to one head.
        const int output = warp_output + n * 8;
        const int head = (place.first_output + output) / rows.stride;
        const int channel = (place.first_output + output) % rows.stride + 2 * t;
        if (head >= run.heads) continue;
        float value[2];
        SACCADE_UNROLL
        for (int i = 0; i < 2; ++i) {
          const bool biased = place.convolution.bias != nullptr && channel + i < rows.channels;
          value[i] = sums[m / 2][n][m % 2 * 2 + i];
          if (biased) value[i] += place.convolution.bias[head * rows.channels + channel + i];
        }
        StorePair(valid ? RoundPair(value[0], value[1], T()) : 0u,
                  rows.Row<T>(place.sample * run.heads + head, position) + channel);
      }
    }
  }
};

// float32 arithmetic. A thread computes 8 positions x 4 outputs.
template <typename T>
struct GsaProjectWithoutMma {
  static constexpr int kDepth = 32;
  static constexpr int kXStride = GsaProjection::kPositions + 4;
  static constexpr int kWeightStride = GsaProjection::kOutputs + 4;

  __device__ static void FillX(const GsaProjection& run, const GsaProjectionPlace& place, int first_channel,
                               float* tile) {
    const T* const x = SampleOf<T>(run, place.sample);
    const int positions = place.convolution.rows.positions;
    SACCADE_UNROLL_BY(2)
    for (int i = 0; i < GsaProjection::kPositions * kDepth / 4 / kGsaThreads; ++i) {
      const int unit = static_cast<int>(threadIdx.x) + i * kGsaThreads;
      float four[4] = {};
      if (run.channel_vectors) {
        const int row = unit / (kDepth / 4);
        const int c = unit % (kDepth / 4) * 4;
        const int position = place.first_position + row;
        if (position < positions && first_channel + c < run.channels) {
          LoadFour(x + position * run.x.spatial_stride[2] + first_channel + c, four);
        }
        SACCADE_UNROLL
        for (int j = 0; j < 4; ++j) tile[(c + j) * kXStride + row] = four[j];
        continue;
      }
      const int row = unit % (GsaProjection::kPositions / 4) * 4;
      const int c = unit / (GsaProjection::kPositions / 4);
      const int position = place.first_position + row;
      if (!run.position_vectors) {
        SACCADE_UNROLL
        for (int j = 0; j < 4; ++j)
          four[j] = ToFloat(LoadX(run, x, positions, position + j, first_channel + c));
      } else if (position < positions && first_channel + c < run.channels) {
        LoadFour(x + position + (first_channel + c) * run.x.channel_stride, four);
      }
      StoreFour(four, tile + c * kXStride + row);
    }
  }

  __device__ static void Run(const GsaProjection& run, const GsaProjectionPlace& place) {
    SACCADE_SHARED(GsaWords, x_words, kDepth * kXStride / 4);
    SACCADE_SHARED(GsaWords, weight_words, kDepth * kWeightStride / 4);
    auto* const x_tile = reinterpret_cast<float*>(x_words);
    auto* const weight_tile = reinterpret_cast<float*>(weight_words);
    const auto thread = static_cast<int>(threadIdx.x);
    const int row = thread / 16 * 8;
    const int output = thread % 16 * 4;
    int weight_row[2];
    SACCADE_UNROLL
    for (int i = 0; i < 2; ++i) weight_row[i] = place.WeightRow(run, thread / 8 + i * 32);
    float sums[8][4] = {};
    for (int first = 0; first < run.channels; first += kDepth) {
      if (first > 0) __syncthreads();
      FillX(run, place, first, x_tile);
      SACCADE_UNROLL
      for (int i = 0; i < 2; ++i) {
        float four[4];
        LoadWeights(run, place, weight_row[i], first + thread % 8 * 4, four);
        SACCADE_UNROLL
        for (int j = 0; j < 4; ++j) {
          weight_tile[(thread % 8 * 4 + j) * kWeightStride + thread / 8 + i * 32] = four[j];
        }
      }
      __syncthreads();
      // Each step is summed separately, because one long sum would have a larger rounding error.
      float part[8][4] = {};
      SACCADE_UNROLL_BY(2)
      for (int c = 0; c < kDepth; ++c) {
        float left[2][4], right[4];
        LoadFour(x_tile + c * kXStride + row, left[0]);
        LoadFour(x_tile + c * kXStride + row + 4, left[1]);
        LoadFour(weight_tile + c * kWeightStride + output, right);
        SACCADE_UNROLL
        for (int i = 0; i < 32; ++i) part[i / 4][i % 4] += left[i / 16][i / 4 % 4] * right[i % 4];
      }
      SACCADE_UNROLL
      for (int i = 0; i < 32; ++i) sums[i / 4][i % 4] += part[i / 4][i % 4];
    }

    const DeviceBox box(run.extent, place.sample);
    const GsaRows& rows = place.convolution.rows;
    const int head = (place.first_output + output) / rows.stride;
    const int channel = (place.first_output + output) % rows.stride;
    if (head >= run.heads) return;
    SACCADE_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (place.convolution.bias == nullptr || channel + i >= rows.channels) continue;
      const float bias = place.convolution.bias[head * rows.channels + channel + i];
      SACCADE_UNROLL
      for (int m = 0; m < 8; ++m) sums[m][i] += bias;
    }
    SACCADE_UNROLL
    for (int m = 0; m < 8; ++m) {
      const int position = place.first_position + row + m;
      if (position >= rows.positions) continue;
      const bool valid = run.extent.valid == nullptr || IsValid(box, position);
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) sums[m][i] = valid ? sums[m][i] : 0.0f;
      StoreFour(sums[m], rows.Row<T>(place.sample * run.heads + head, position) + channel);
    }
  }
};

// kTensorCores requests tensor cores; chips without suitable ones use float32 arithmetic.
template <typename T, bool kTensorCores>
__global__ void __launch_bounds__(kGsaThreads, 2) GsaProjectKernel(GsaProjection run) {
  const GsaProjectionPlace place(run);
  if constexpr (kTensorCores && kHasMma) {
    GsaProjectWithMma<T>::Run(run, place);
  } else {
    GsaProjectWithoutMma<T>::Run(run, place);
  }
}

}  // namespace saccade::kernels
