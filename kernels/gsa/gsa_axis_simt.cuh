// One axis in float32 arithmetic: for float32 elements, and on chips without suitable tensor cores.
#pragma once

#include <cmath>

#include "kernels/gsa/gsa_axis_run.cuh"

namespace saccade::kernels {

template <typename T, int kTiles, bool kSoftmax>
struct GsaAxisWithoutMma {
  static constexpr int kLines = 8;  // computed at once
  static constexpr int kChannels = kTiles * kGsaVector;
  static constexpr int kDepth = 32;                   // key channels per step
  static constexpr int kKeyRow = GsaAxis::kKeys + 4;  // scores[line][own][key], values[line][channel][key]
  static constexpr int kValueLine = kChannels * kKeyRow + 4;
  static constexpr int kDepthRow = kDepth + 4;          // embedding[distance][key channel]
  static constexpr int kRows = kLines * GsaAxis::kOwn;  // of scores

  struct Shared {
    float* scores;
    float* values;
    float* embedding;   // then the context, transposed
    float* correction;  // [kRows]: factor that rescales earlier results of a softmax
  };

  __device__ static void FillValues(const GsaAxis& run, const GsaAxisPlace& place, int first_line, int key,
                                    float* values) {
    const auto thread = static_cast<int>(threadIdx.x);
    static_assert(kLines * GsaAxis::kKeys == kGsaThreads);
    const int line = run.axis == 0 ? thread % kLines : thread / GsaAxis::kKeys;
    const int at = run.axis == 0 ? thread / kLines : thread % GsaAxis::kKeys;
    const T* const map = run.values.Row<T>(place.matrix, 0);
    const int position = place.Nearest(run, run.values, first_line + line, key + at);
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int channel = place.first_channel + tile * kGsaVector;
      float vector[kGsaVector] = {};
      if (key + at < place.length && channel < run.values.stride)
        LoadVector(map + position + channel, vector);
      SACCADE_UNROLL
      for (int c = 0; c < kGsaVector; ++c) {
        values[line * kValueLine + (tile * kGsaVector + c) * kKeyRow + at] = vector[c];
      }
    }
  }

  // scores[line][own][key] = q (embedding of key - own), plus q k for a softmax. A thread computes one own
  // position on four lines with four keys. Begins after a barrier and ends with one.
  __device__ static void Scores(const GsaAxis& run, const GsaAxisPlace& place, int first_line, int first_own,
                                int key, const Shared& shared) {
    const auto thread = static_cast<int>(threadIdx.x);
    const int own = thread / 16;
    const int line = thread / 8 % 2 * 4;
    const int column = thread % 8;
    const T* const q = run.q.Row<T>(place.matrix, 0);
    const T* const k = kSoftmax ? run.k.Row<T>(place.matrix, 0) : q;
    int at[4];
    SACCADE_UNROLL
    for (int l = 0; l < 4; ++l) at[l] = place.Nearest(run, run.q, first_line + line + l, first_own + own);
    float sums[4][4] = {};
    for (int first = 0; first < run.q.stride; first += kDepth) {
      const int depth = run.q.stride - first < kDepth ? run.q.stride - first : kDepth;
      if (first > 0) __syncthreads();
      const int first_offset = key - first_own - (GsaAxis::kOwn - 1);
      for (int i = thread; i < GsaAxis::kDistances * depth; i += kGsaThreads) {
        shared.embedding[i / depth * kDepthRow + i % depth] =
            EmbeddingAt(run, first_offset + i / depth, first + i % depth);
      }
      __syncthreads();
      SACCADE_UNROLL_BY(1)
      for (int c = 0; c < depth; c += 4) {
        float left[4][4];
        SACCADE_UNROLL
        for (int l = 0; l < 4; ++l) LoadFour(q + at[l] + first + c, left[l]);
        SACCADE_UNROLL
        for (int n = 0; n < 4; ++n) {
          float right[4];
          LoadFour(shared.embedding + (column + n * 8 - own + GsaAxis::kOwn - 1) * kDepthRow + c, right);
          SACCADE_UNROLL
          for (int l = 0; l < 4; ++l) {
            float other[4] = {};
            if constexpr (kSoftmax) {
              LoadFour(k + place.Nearest(run, run.k, first_line + line + l, key + column + n * 8) + first + c,
                       other);
            }
            SACCADE_UNROLL
            for (int i = 0; i < 4; ++i) sums[l][n] += left[l][i] * (right[i] + other[i]);
          }
        }
      }
    }
    SACCADE_UNROLL
    for (int i = 0; i < 16; ++i) {
      shared.scores[((line + i / 4) * GsaAxis::kOwn + own) * kKeyRow + column + i % 4 * 8] =
          sums[i / 4][i % 4];
    }
    __syncthreads();
  }

  // Turns scores into coefficients relative to the new maximum, two threads per row. Begins after a barrier
  // and ends with one.
  __device__ static void OnlineSoftmax(const GsaAxisPlace& place, int key, const Shared& shared, float& top,
                                       float& total) {
    const int row = static_cast<int>(threadIdx.x) / 2;
    static_assert(kRows * 2 == kGsaThreads);
    float* const scores = shared.scores + row * kKeyRow;
    const float before = top;
    const int count = place.length - key < GsaAxis::kKeys ? place.length - key : GsaAxis::kKeys;
    for (int i = static_cast<int>(threadIdx.x) % 2; i < count; i += 2) top = fmaxf(top, scores[i]);
    top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 1));
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x) % 2; i < GsaAxis::kKeys; i += 2) {
      const float value = i < count ? expf(scores[i] - top) : 0.0f;
      scores[i] = value;
      sum += value;
    }
    const float factor = expf(before - top);
    total = total * factor + sum + __shfl_xor_sync(kWholeWarp, sum, 1);
    if (threadIdx.x % 2 == 0) shared.correction[row] = factor;
    __syncthreads();
  }

  // sums[own][channel] += the rows' four numbers times the channels' four numbers.
  __device__ static void MultiplyFour(const float (&left)[4][4], const float* columns, int row_stride,
                                      float (&sums)[4][kTiles]) {
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      float right[4];
      LoadFour(columns + tile * kGsaVector * row_stride, right);
      SACCADE_UNROLL
      for (int i = 0; i < 16; ++i) sums[i / 4][tile] += left[i / 4][i % 4] * right[i % 4];
    }
  }

  __device__ static void RunLines(const GsaAxis& run, const GsaAxisPlace& place, int first_line,
                                  int first_own, const Shared& shared) {
    const auto thread = static_cast<int>(threadIdx.x);
    // A warp has a line; a thread has own positions own + 4 i and channels column + 8 tile.
    const int line = thread / kWarp;
    const int column = thread % 8;
    const int own = thread % kWarp / 8;
    float sums[4][kTiles] = {};
    float top = -INFINITY;
    float total = 0;
    const bool padding = place.IsEmpty() || first_own >= place.length;
    const int keys = padding ? 0 : place.Keys(run);
    SACCADE_UNROLL_BY(1)
    for (int key = 0; key < keys; key += GsaAxis::kKeys) {
      __syncthreads();
      FillValues(run, place, first_line, key, shared.values);
      Scores(run, place, first_line, first_own, key, shared);
      if constexpr (kSoftmax) {
        OnlineSoftmax(place, key, shared, top, total);
        SACCADE_UNROLL
        for (int i = 0; i < 4 * kTiles; ++i) {
          sums[i / kTiles][i % kTiles] *= shared.correction[line * GsaAxis::kOwn + own + i / kTiles * 4];
        }
      }
      // Each step is summed separately, because one long sum would have a larger rounding error.
      float part[4][kTiles] = {};
      const float* const scores = shared.scores + (line * GsaAxis::kOwn + own) * kKeyRow;
      const float* const values = shared.values + line * kValueLine + column * kKeyRow;
      SACCADE_UNROLL_BY(1)
      for (int k = 0; k < GsaAxis::kKeys && key + k < place.length; k += 4) {
        float left[4][4];
        SACCADE_UNROLL
        for (int i = 0; i < 4; ++i) LoadFour(scores + i * 4 * kKeyRow + k, left[i]);
        MultiplyFour(left, values + k, kKeyRow, part);
      }
      SACCADE_UNROLL
      for (int i = 0; i < 4 * kTiles; ++i) sums[i / kTiles][i % kTiles] += part[i / kTiles][i % kTiles];
    }
    if constexpr (kSoftmax) {
      __syncthreads();
      if (thread % 2 == 0) shared.correction[thread / 2] = total;
      __syncthreads();
      SACCADE_UNROLL
      for (int i = 0; i < 4 * kTiles; ++i) {
        sums[i / kTiles][i % kTiles] /= shared.correction[line * GsaAxis::kOwn + own + i / kTiles * 4];
      }
    }
    if (run.context != nullptr && !padding) {
      const T* const q = run.q.Row<T>(place.matrix, 0);
      float part[4][kTiles] = {};
      SACCADE_UNROLL_BY(1)
      for (int first = 0; first < run.q.stride; first += kDepth) {
        const int depth = run.q.stride - first < kDepth ? run.q.stride - first : kDepth;
        __syncthreads();
        for (int i = thread; i < kChannels * depth; i += kGsaThreads) {
          shared.embedding[i % kChannels * kDepthRow + i / kChannels] =
              ContextAt(run, place, first + i / kChannels, place.first_channel + i % kChannels);
        }
        __syncthreads();
        SACCADE_UNROLL_BY(1)
        for (int c = 0; c < depth; c += 4) {
          float left[4][4];
          SACCADE_UNROLL
          for (int i = 0; i < 4; ++i) {
            LoadFour(q + place.Nearest(run, run.q, first_line + line, first_own + own + i * 4) + first + c,
                     left[i]);
          }
          MultiplyFour(left, shared.embedding + column * kDepthRow + c, kDepthRow, part);
        }
      }
      SACCADE_UNROLL
      for (int i = 0; i < 4 * kTiles; ++i) sums[i / kTiles][i % kTiles] += part[i / kTiles][i % kTiles];
    }
    T* const out = static_cast<T*>(run.out) + place.OutOffset(run);
    const int y = first_line + line;
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int channel = place.first_channel + tile * kGsaVector + column;
      if (channel >= run.values.channels || y >= run.lines) break;
      const GsaAffine<1> affine(run, place, channel);
      SACCADE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int x = first_own + own + i * 4;
        if (x >= place.OwnEnd(run)) break;
        const float value = place.IsValid(y, x) ? sums[i][tile] * affine.scale[0] + affine.shift[0] : 0.0f;
        FromFloat(value, out + channel * run.out_channel + y * run.out_line + x * run.out_own);
      }
    }
  }

  __device__ static void Run(const GsaAxis& run) {
    SACCADE_SHARED(GsaWords, scores, kRows * kKeyRow / 4);
    SACCADE_SHARED(GsaWords, values, kLines * kValueLine / 4);
    SACCADE_SHARED(GsaWords, embedding, GsaAxis::kDistances * kDepthRow / 4);
    SACCADE_SHARED(float, correction, kRows);
    const Shared shared = {reinterpret_cast<float*>(scores), reinterpret_cast<float*>(values),
                           reinterpret_cast<float*>(embedding), correction};
    const GsaAxisPlace place(run, GsaAxis::kLines<T>, kChannels);
    SACCADE_UNROLL_BY(1)
    for (int own = place.first_own; own < place.OwnEnd(run); own += run.own_blocks * GsaAxis::kOwn) {
      SACCADE_UNROLL_BY(1)
      for (int half = 0; half < GsaAxis::kLines<T>; half += kLines) {
        RunLines(run, place, place.first_line + half, own, shared);
      }
    }
  }
};

}  // namespace saccade::kernels
