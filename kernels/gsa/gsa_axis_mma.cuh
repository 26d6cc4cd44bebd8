// One axis on the tensor cores, for 16-bit elements. Scores and coefficients are rounded to 16 bits before
// they are multiplied by the values; sums, maxima and the softmax are float32.
#pragma once

#include <cmath>

#include "kernels/gsa/gsa_axis_run.cuh"

namespace saccade::kernels {

template <typename T, int kTiles>
struct GsaAxisWithMma {
  static constexpr int kLines = GsaAxis::kLines<T>;
  static constexpr int kChannels = kTiles * kGsaVector;
  static constexpr int kDepth = 64;  // key channels per step
  // Shared memory in words of two elements. The distances between rows keep a fragment's words in different
  // banks, and those of the values' lines the words that neighbouring threads write.
  static constexpr int kScoreLine = GsaAxis::kKeys / 2 + 4;         // scores[own][line][key pair]
  static constexpr int kScoreOwn = kLines * kScoreLine + 4;         //
  static constexpr int kValueRow = GsaAxis::kKeys / 2 + 4;          // values[line][channel][key pair]
  static constexpr int kValueLine = kChannels * kValueRow + 18;     //
  static constexpr int kDepthRow = kDepth / 2 + 4;                  // embedding[distance][key channel pair]
  static constexpr int kOwnLines = kLines / (kGsaThreads / kWarp);  // of a warp, and own positions

  struct Shared {
    uint32_t* scores;
    uint32_t* values;
    uint32_t* embedding;  // then the context, transposed
  };
  // The sums of a warp: own positions x channels for each of its lines.
  struct Sums {
    float value[kOwnLines][kTiles][4] = {};
    float top[kOwnLines][2];  // for a softmax: the maximum of rows g and g + 8, and this lane's denominators
    float total[kOwnLines][2] = {};
  };

  __device__ static int Group() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
  __device__ static int InGroup() { return static_cast<int>(threadIdx.x) % 4; }
  __device__ static int FirstOfWarp() { return static_cast<int>(threadIdx.x) / kWarp * kOwnLines; }

  // Loads the fragment of key channels [c, c + 16) of two positions; either may be null.
  __device__ static void LoadQueries(const GsaAxis& run, const T* first, const T* second, int c,
                                     uint32_t (&a)[4]) {
    const int at = c + 2 * InGroup();
    const bool deep = c + kGsaVector < run.q.stride;
    a[0] = first == nullptr ? 0u : LoadPair(first + at);
    a[1] = second == nullptr ? 0u : LoadPair(second + at);
    a[2] = first == nullptr || !deep ? 0u : LoadPair(first + at + kGsaVector);
    a[3] = second == nullptr || !deep ? 0u : LoadPair(second + at + kGsaVector);
  }

  // Loads a fragment whose columns are rows of shared memory. Channels from `depth` on are not there.
  __device__ static void LoadColumns(const uint32_t* row, int c, int depth, uint32_t (&b)[2]) {
    b[0] = row[c / 2 + InGroup()];
    b[1] = c + kGsaVector < depth ? row[c / 2 + InGroup() + 4] : 0u;
  }

  // Writes the lines' values for keys [key, key + kKeys), turned around so that pairs of keys are adjacent.
  __device__ static void FillValues(const GsaAxis& run, const GsaAxisPlace& place, int key,
                                    uint32_t* values) {
    const auto thread = static_cast<int>(threadIdx.x);
    // Neighbouring threads read neighbouring positions.
    const int line = run.axis == 0 ? thread % kLines : thread / kLines;
    const int pair = run.axis == 0 ? thread / kLines : thread % kLines;
    static_assert(kLines * GsaAxis::kKeys / 2 == kGsaThreads && kLines == GsaAxis::kKeys / 2);
    const int first = key + 2 * pair;
    const T* rows[2];
    SACCADE_UNROLL
    for (int i = 0; i < 2; ++i) {
      rows[i] = place.Find<T>(run.values, place.first_line + line, first + i);
    }
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int channel = place.first_channel + tile * kGsaVector;
      GsaWords words[2] = {};
      SACCADE_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (rows[i] != nullptr && channel < run.values.stride) words[i] = LoadWords(rows[i] + channel);
      }
      uint32_t pairs[kGsaVector];
      InterleaveRows(words[0], words[1], pairs);
      SACCADE_UNROLL
      for (int c = 0; c < kGsaVector; ++c) {
        values[line * kValueLine + (tile * kGsaVector + c) * kValueRow + pair] = pairs[c];
      }
    }
  }

  __device__ static void FillEmbedding(const GsaAxis& run, int first_offset, int first_channel, int depth,
                                       uint32_t* embedding) {
    const int pairs = depth / 2;
    for (int i = static_cast<int>(threadIdx.x); i < GsaAxis::kDistances * pairs; i += kGsaThreads) {
      const int row = i / pairs;
      const int channel = first_channel + i % pairs * 2;
      embedding[row * kDepthRow + i % pairs] = PackedPair<T>(
          EmbeddingAt(run, first_offset + row, channel), EmbeddingAt(run, first_offset + row, channel + 1));
    }
  }

  // scores[own][line][key] = q[line][own] times the embedding of key - own. Begins after a barrier and ends
  // with one.
  __device__ static void RelativeScores(const GsaAxis& run, const GsaAxisPlace& place, int first_own, int key,
                                        const Shared& shared) {
    float sums[kOwnLines][GsaAxis::kKeys / 8][4] = {};
    const int line = place.first_line + Group();
    for (int first = 0; first < run.q.stride; first += kDepth) {
      const int depth = run.q.stride - first < kDepth ? run.q.stride - first : kDepth;
      if (first > 0) __syncthreads();
      FillEmbedding(run, key - first_own - (GsaAxis::kOwn - 1), first, depth, shared.embedding);
      __syncthreads();
      SACCADE_UNROLL
      for (int i = 0; i < kOwnLines; ++i) {
        const int own = FirstOfWarp() + i;
        const T* const q = place.Find<T>(run.q, line, first_own + own);
        const T* const below = place.Find<T>(run.q, line + 8, first_own + own);
        for (int c = 0; c < depth; c += 16) {
          uint32_t a[4];
          LoadQueries(run, q, below, first + c, a);
          SACCADE_UNROLL
          for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
            if (key + n * 8 >= place.keys) break;
            uint32_t b[2];
            LoadColumns(shared.embedding + (n * 8 + Group() - own + GsaAxis::kOwn - 1) * kDepthRow, c, depth,
                        b);
            Mma(sums[i][n], a, b, T());
          }
        }
      }
    }
    SACCADE_UNROLL
    for (int i = 0; i < kOwnLines; ++i) {
      uint32_t* const to = shared.scores + (FirstOfWarp() + i) * kScoreOwn + Group() * kScoreLine + InGroup();
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
        to[n * 4] = PackedPair<T>(sums[i][n][0], sums[i][n][1]);
        to[8 * kScoreLine + n * 4] = PackedPair<T>(sums[i][n][2], sums[i][n][3]);
      }
    }
    __syncthreads();
  }

  // Adds q k to the scores of a line and turns them into coefficients relative to the new maximum. Rescales
  // the earlier sums of the line, the warp's i-th.
  __device__ static void OnlineSoftmax(const GsaAxis& run, const GsaAxisPlace& place, int line, int own,
                                       int key, uint32_t (&coefficients)[GsaAxis::kKeys / 16][4], int i,
                                       Sums& sums) {
    float logits[GsaAxis::kKeys / 8][4];
    SACCADE_UNROLL
    for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
      UnpackPair<T>(coefficients[n / 2][n % 2 * 2], logits[n][0], logits[n][1]);
      UnpackPair<T>(coefficients[n / 2][n % 2 * 2 + 1], logits[n][2], logits[n][3]);
    }
    const T* const q = place.Find<T>(run.q, line, own);
    const T* const below = place.Find<T>(run.q, line, own + 8);
    for (int c = 0; c < run.q.stride; c += 16) {
      uint32_t a[4];
      LoadQueries(run, q, below, c, a);
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
        uint32_t pair[4];
        LoadQueries(run, place.Find<T>(run.k, line, key + n * 8 + Group()), nullptr, c, pair);
        const uint32_t b[2] = {pair[0], pair[2]};
        Mma(logits[n], a, b, T());
      }
    }
    SACCADE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float top = sums.top[i][half];
      SACCADE_UNROLL
      for (int j = 0; j < GsaAxis::kKeys / 4; ++j) {
        float& logit = logits[j / 2][half * 2 + j % 2];
        if (key + j / 2 * 8 + 2 * InGroup() + j % 2 >= place.keys) logit = -INFINITY;
        top = fmaxf(top, logit);
      }
      for (int lanes = 1; lanes < 4; lanes *= 2) top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, lanes));
      const float factor = expf(sums.top[i][half] - top);
      sums.top[i][half] = top;
      sums.total[i][half] *= factor;
      SACCADE_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        sums.value[i][tile][half * 2] *= factor;
        sums.value[i][tile][half * 2 + 1] *= factor;
      }
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
        const float first = expf(logits[n][half * 2] - top);
        const float second = expf(logits[n][half * 2 + 1] - top);
        sums.total[i][half] += first + second;
        coefficients[n / 2][n % 2 * 2 + half] = PackedPair<T>(first, second);
      }
    }
  }

  // Adds the scores of keys [key, key + kKeys) times their values.
  __device__ static void MultiplyValues(const GsaAxis& run, const GsaAxisPlace& place, int first_own, int key,
                                        const Shared& shared, Sums& sums) {
    SACCADE_UNROLL
    for (int i = 0; i < kOwnLines; ++i) {
      const int line = FirstOfWarp() + i;
      uint32_t a[GsaAxis::kKeys / 16][4];
      const uint32_t* const from = shared.scores + Group() * kScoreOwn + line * kScoreLine + InGroup();
      SACCADE_UNROLL
      for (int k = 0; k < GsaAxis::kKeys / 16; ++k) {
        a[k][0] = from[k * 8];
        a[k][1] = from[k * 8 + 8 * kScoreOwn];
        a[k][2] = from[k * 8 + 4];
        a[k][3] = from[k * 8 + 8 * kScoreOwn + 4];
      }
      if (run.softmax) {
        OnlineSoftmax(run, place, place.first_line + line, first_own + Group(), key, a, i, sums);
      }
      SACCADE_UNROLL
      for (int k = 0; k < GsaAxis::kKeys / 16; ++k) {
        if (key + k * 16 >= place.keys) break;
        SACCADE_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          uint32_t b[2];
          LoadColumns(shared.values + line * kValueLine + (tile * kGsaVector + Group()) * kValueRow, k * 16,
                      GsaAxis::kKeys, b);
          Mma(sums.value[i][tile], a[k], b, T());
        }
      }
    }
  }

  // Adds q times the context.
  __device__ static void AddContext(const GsaAxis& run, const GsaAxisPlace& place, int first_own,
                                    const Shared& shared, Sums& sums) {
    for (int first = 0; first < run.q.stride; first += kDepth) {
      const int depth = run.q.stride - first < kDepth ? run.q.stride - first : kDepth;
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kChannels * depth / 2; i += kGsaThreads) {
        const int c = i % kChannels;
        const int key = first + i / kChannels * 2;
        shared.embedding[c * kDepthRow + i / kChannels] =
            PackedPair<T>(ContextAt(run, place, key, place.first_channel + c),
                          ContextAt(run, place, key + 1, place.first_channel + c));
      }
      __syncthreads();
      SACCADE_UNROLL
      for (int i = 0; i < kOwnLines; ++i) {
        const int line = place.first_line + FirstOfWarp() + i;
        const T* const q = place.Find<T>(run.q, line, first_own + Group());
        const T* const below = place.Find<T>(run.q, line, first_own + Group() + 8);
        for (int c = 0; c < depth; c += 16) {
          uint32_t a[4];
          LoadQueries(run, q, below, first + c, a);
          SACCADE_UNROLL
          for (int tile = 0; tile < kTiles; ++tile) {
            uint32_t b[2];
            LoadColumns(shared.embedding + (tile * kGsaVector + Group()) * kDepthRow, c, depth, b);
            Mma(sums.value[i][tile], a, b, T());
          }
        }
      }
    }
  }

  __device__ static void Run(const GsaAxis& run) {
    SACCADE_SHARED(uint32_t, scores, GsaAxis::kOwn* kScoreOwn);
    SACCADE_SHARED(uint32_t, values, kLines* kValueLine);
    SACCADE_SHARED(uint32_t, embedding, GsaAxis::kDistances* kDepthRow);
    const Shared shared = {scores, values, embedding};
    const GsaAxisPlace place(run, kLines, kChannels);
    for (int own = place.first_own; own < place.own_end; own += run.own_blocks * GsaAxis::kOwn) {
      Sums sums;
      SACCADE_UNROLL
      for (int i = 0; i < kOwnLines; ++i) sums.top[i][0] = sums.top[i][1] = -INFINITY;
      for (int key = 0; key < place.keys; key += GsaAxis::kKeys) {
        __syncthreads();
        FillValues(run, place, key, values);
        RelativeScores(run, place, own, key, shared);
        MultiplyValues(run, place, own, key, shared, sums);
      }
      if (run.softmax) {
        SACCADE_UNROLL
        for (int i = 0; i < kOwnLines * 2; ++i) {
          float total = sums.total[i / 2][i % 2];
          for (int lanes = 1; lanes < 4; lanes *= 2) total += __shfl_xor_sync(kWholeWarp, total, lanes);
          SACCADE_UNROLL
          for (int j = 0; j < kTiles * 2; ++j) sums.value[i / 2][j / 2][i % 2 * 2 + j % 2] /= total;
        }
      }
      if (run.context != nullptr) AddContext(run, place, own, shared, sums);
      SACCADE_UNROLL
      for (int i = 0; i < kOwnLines * 2 * kTiles; ++i) {
        const int line = i / (2 * kTiles);
        const int half = i / kTiles % 2;
        const float(&from)[4] = sums.value[line][i % kTiles];
        const float pair[2] = {from[half * 2], from[half * 2 + 1]};
        place.Store<T>(run, place.first_line + FirstOfWarp() + line, own + Group() + half * 8,
                       place.first_channel + i % kTiles * kGsaVector + 2 * InGroup(), pair);
      }
    }
  }
};

}  // namespace saccade::kernels
