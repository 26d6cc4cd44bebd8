// One axis on the tensor cores, for 16-bit elements. Scores and coefficients are rounded to 16 bits before
// they are multiplied by the values; sums, maxima and the softmax are float32.
#pragma once

#include <cmath>

#include "kernels/gsa/gsa_axis_run.cuh"

namespace saccade::kernels {

// kHeld: the values, embedding and context of a block's lines fit into shared memory and are loaded once,
// otherwise again for every step. The arithmetic is the same.
template <typename T, int kTiles, bool kSoftmax, bool kHeld>
class GsaAxisWithMma {
  static constexpr int kLines = GsaAxis::kLines<T>;
  static constexpr int kChannels = kTiles * kGsaVector;
  static constexpr int kHeldKeys = kTiles == 1 ? 2 * GsaAxis::kKeys : GsaAxis::kKeys;
  static constexpr int kMaxDepth = 64;  // of key channels of an embedding and a context that are held
  static constexpr int kDepth = 32;     // of other ones per step
  // The common case of eight channels per head is compiled for this number of key channels.
  static constexpr bool kEight = kHeld && kTiles == 1;
  // Shared memory in words of two elements. The distances between rows keep a fragment's words in different
  // banks, and those of the values' lines the words that neighbouring threads write.
  static constexpr int kScoreLine = GsaAxis::kKeys / 2 + 4;  // scores[own][line][key pair]
  static constexpr int kScoreOwn = kLines * kScoreLine + 4;
  static constexpr int kValueRow = kHeldKeys / 2 + 4;  // values[line][channel][key pair]
  static constexpr int kValueLine = kChannels * kValueRow + 18;
  static constexpr int kEmbeddingWords = GsaAxis::kDistances * (kDepth / 2 + 4);
  static constexpr int kContextWords = kChannels * (kMaxDepth / 2 + 4);
  static constexpr int kOwnLines = kLines / (kGsaThreads / kWarp);  // of a warp, and own positions

  struct Shared {
    uint32_t* scores;
    uint32_t* values;
    uint32_t* embedding;  // [distance][key channel pair]
    uint32_t* context;    // [channel][key channel pair]
  };
  // The sums of a warp: own positions x channels for each of its lines.
  struct Sums {
    float value[kOwnLines][kTiles][4] = {};
    float top[kOwnLines][2];  // for a softmax: the maximum of rows g and g + 8, and this lane's denominators
    float total[kOwnLines][2] = {};
  };
  // The rows of the embedding in shared memory: from the distance -base on.
  struct Distances {
    int base, count;
  };

  // Returns the distance in words between rows of `depth` key channels: an odd multiple of four.
  __host__ __device__ static int RowWords(int depth) {
    return depth / 8 % 2 == 1 ? depth / 2 : depth / 2 + 4;
  }
  __device__ static int Group() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
  __device__ static int InGroup() { return static_cast<int>(threadIdx.x) % 4; }
  __device__ static int FirstOfWarp() { return static_cast<int>(threadIdx.x) / kWarp * kOwnLines; }

  // The q of two positions: the rows g and g + 8 of a fragment.
  struct Queries {
    __device__ Queries(const T* map, int first, int second)
        : above(map + first + 2 * InGroup()), below(map + second + 2 * InGroup()) {}
    const T* above;
    const T* below;
  };

  // sums[n] += q times the n-th eight columns, whose rows in shared memory are offsets[n] words from
  // `columns`, over 16 key channels from c on, or eight.
  template <bool kSixteen, int kColumns>
  __device__ static void MultiplyQueries(const Queries& q, int c, const uint32_t* columns,
                                         const int (&offsets)[kColumns], float (&sums)[kColumns][4]) {
    const uint32_t a[4] = {LoadPair(q.above + c), LoadPair(q.below + c),
                           kSixteen ? LoadPair(q.above + c + kGsaVector) : 0u,
                           kSixteen ? LoadPair(q.below + c + kGsaVector) : 0u};
    const uint32_t* const from = columns + c / 2 + InGroup();
    SACCADE_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      const uint32_t b[2] = {from[offsets[n]], kSixteen ? from[offsets[n] + 4] : 0u};
      Mma(sums[n], a, b, T());
    }
  }
  // Same over `depth` key channels, a multiple of eight.
  template <int kColumns>
  __device__ static void MultiplyAllQueries(const Queries& q, int depth, const uint32_t* columns,
                                            const int (&offsets)[kColumns], float (&sums)[kColumns][4]) {
    if constexpr (kEight) {
      MultiplyQueries<false>(q, 0, columns, offsets, sums);
    } else {
      int c = 0;
      SACCADE_UNROLL_BY(1)
      for (; c + 8 < depth; c += 16) MultiplyQueries<true>(q, c, columns, offsets, sums);
      if (c < depth) MultiplyQueries<false>(q, c, columns, offsets, sums);
    }
  }

  // Writes the lines' values for keys [key, key + kKeys), turned around so that pairs of keys are adjacent.
  __device__ static void FillValues(const GsaAxis& run, const GsaAxisPlace& place, int key,
                                    uint32_t* values) {
    const auto thread = static_cast<int>(threadIdx.x);
    // Neighbouring threads read neighbouring positions.
    const int line = run.axis == 0 ? thread % kLines : thread / kLines;
    const int pair = run.axis == 0 ? thread / kLines : thread % kLines;
    static_assert(kLines * GsaAxis::kKeys / 2 == kGsaThreads && kLines == GsaAxis::kKeys / 2);
    const T* const map = run.values.Row<T>(place.matrix, 0) + place.first_channel;
    const int first = key + 2 * pair;
    const int at[2] = {place.Nearest(run, run.values, place.first_line + line, first),
                       place.Nearest(run, run.values, place.first_line + line, first + 1)};
    uint32_t* const to = values + line * kValueLine + key % kHeldKeys / 2 + pair;
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int channel = tile * kGsaVector;
      GsaWords words[2] = {};
      SACCADE_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (first + i < place.length && place.first_channel + channel < run.values.stride) {
          words[i] = LoadWords(map + at[i] + channel);
        }
      }
      uint32_t pairs[kGsaVector];
      InterleaveRows(words[0], words[1], pairs);
      SACCADE_UNROLL
      for (int c = 0; c < kGsaVector; ++c) to[(channel + c) * kValueRow] = pairs[c];
    }
  }

  __device__ static void FillEmbedding(const GsaAxis& run, const Distances& distances, int first_channel,
                                       int depth, uint32_t* embedding) {
    const int pairs = depth / 2;
    SACCADE_UNROLL_BY(1)
    for (int i = static_cast<int>(threadIdx.x); i < distances.count * pairs; i += kGsaThreads) {
      const int row = i / pairs;
      const int pair = i - row * pairs;
      const int channel = first_channel + pair * 2;
      embedding[row * RowWords(depth) + pair] =
          RoundPair(EmbeddingAt(run, row - distances.base, channel),
                    EmbeddingAt(run, row - distances.base, channel + 1), T());
    }
  }

  __device__ static void FillContext(const GsaAxis& run, const GsaAxisPlace& place, int first, int depth,
                                     uint32_t* context) {
    SACCADE_UNROLL_BY(1)
    for (int i = static_cast<int>(threadIdx.x); i < kChannels * depth / 2; i += kGsaThreads) {
      const int c = i % kChannels;
      const int key = first + i / kChannels * 2;
      context[c * RowWords(depth) + i / kChannels] =
          RoundPair(ContextAt(run, place, key, place.first_channel + c),
                    ContextAt(run, place, key + 1, place.first_channel + c), T());
    }
  }

  using Scores = float[GsaAxis::kKeys / 8][4];  // of one own position

  // Adds the products of q at an own position and the embedding. Past the last key it computes scores of
  // other distances: they are multiplied by zeros or masked.
  __device__ static void MultiplyEmbedding(const GsaAxis& run, const GsaAxisPlace& place, const T* q,
                                           const Distances& distances, int own, int key, int depth,
                                           const uint32_t* embedding, Scores& sums) {
    const int line = place.first_line + Group();
    const Queries queries(q, place.Nearest(run, run.q, line, own), place.Nearest(run, run.q, line + 8, own));
    const int row_words = RowWords(depth);
    int offsets[GsaAxis::kKeys / 8];
    SACCADE_UNROLL
    for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
      offsets[n] = kEight || key + n * 8 < place.length ? n * 8 * row_words : 0;
    }
    MultiplyAllQueries(queries, depth, embedding + (key + Group() - own + distances.base) * row_words,
                       offsets, sums);
  }

  __device__ static void StoreScores(const Scores& sums, int own, uint32_t* scores) {
    uint32_t* const to = scores + own * kScoreOwn + Group() * kScoreLine + InGroup();
    SACCADE_UNROLL
    for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
      to[n * 4] = RoundPair(sums[n][0], sums[n][1], T());
      to[8 * kScoreLine + n * 4] = RoundPair(sums[n][2], sums[n][3], T());
    }
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
    const T* const q = run.q.Row<T>(place.matrix, 0);
    const T* const k = run.k.Row<T>(place.matrix, 0) + 2 * InGroup();
    const Queries queries(q, place.Nearest(run, run.q, line, own), place.Nearest(run, run.q, line, own + 8));
    SACCADE_UNROLL_BY(1)
    for (int c = 0; c < run.q.stride; c += 16) {
      const bool deep = c + kGsaVector < run.q.stride;
      const uint32_t a[4] = {LoadPair(queries.above + c), LoadPair(queries.below + c),
                             deep ? LoadPair(queries.above + c + kGsaVector) : 0u,
                             deep ? LoadPair(queries.below + c + kGsaVector) : 0u};
      SACCADE_UNROLL
      for (int n = 0; n < GsaAxis::kKeys / 8; ++n) {
        const T* const from = k + place.Nearest(run, run.k, line, key + n * 8 + Group()) + c;
        const uint32_t b[2] = {LoadPair(from), deep ? LoadPair(from + kGsaVector) : 0u};
        Mma(logits[n], a, b, T());
      }
    }
    SACCADE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float top = sums.top[i][half];
      SACCADE_UNROLL
      for (int j = 0; j < GsaAxis::kKeys / 4; ++j) {
        float& logit = logits[j / 2][half * 2 + j % 2];
        if (key + j / 2 * 8 + 2 * InGroup() + j % 2 >= place.length) logit = -INFINITY;
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
        coefficients[n / 2][n % 2 * 2 + half] = RoundPair(first, second, T());
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
      if constexpr (kSoftmax) {
        OnlineSoftmax(run, place, place.first_line + line, first_own + Group(), key, a, i, sums);
      }
      const uint32_t* const values =
          shared.values + line * kValueLine + Group() * kValueRow + key % kHeldKeys / 2 + InGroup();
      SACCADE_UNROLL
      for (int k = 0; k < GsaAxis::kKeys / 16; ++k) {
        SACCADE_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          const uint32_t* const column = values + tile * kGsaVector * kValueRow + k * 8;
          const uint32_t b[2] = {column[0], column[4]};
          Mma(sums.value[i][tile], a[k], b, T());
        }
      }
    }
  }

  // Adds q times the context.
  __device__ static void MultiplyContext(const GsaAxis& run, const GsaAxisPlace& place, const T* q,
                                         int first_own, int depth, const uint32_t* context, Sums& sums) {
    int offsets[kTiles];
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) offsets[tile] = tile * kGsaVector * RowWords(depth);
    const int own = first_own + Group();
    SACCADE_UNROLL
    for (int i = 0; i < kOwnLines; ++i) {
      const int line = place.first_line + FirstOfWarp() + i;
      const Queries queries(q, place.Nearest(run, run.q, line, own),
                            place.Nearest(run, run.q, line, own + 8));
      MultiplyAllQueries(queries, depth, context + Group() * RowWords(depth), offsets, sums.value[i]);
    }
  }

  struct Affines {
    GsaAffine<2> of[kTiles];
  };

  // Stores the results of the own positions of a tile, or zeros in the padding.
  __device__ static void Store(const GsaAxis& run, const GsaAxisPlace& place, int first_own,
                               const Affines& affines, T* out, const Sums& sums) {
    const int line = place.first_line + FirstOfWarp();
    const int own = first_own + Group();
    const int channel = place.first_channel + 2 * InGroup();
    const int at = channel * run.out_channel + line * run.out_line + own * run.out_own;
    SACCADE_UNROLL
    for (int i = 0; i < kOwnLines * 2; ++i) {
      const int y = line + i / 2;
      const int x = own + i % 2 * 8;
      if (y >= run.lines || x >= place.OwnEnd(run)) continue;
      const bool valid = place.IsValid(y, x);
      T* const row = out + (at + i / 2 * run.out_line + i % 2 * 8 * run.out_own);
      SACCADE_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        if (channel + tile * kGsaVector >= run.values.channels) break;
        T* const to = row + tile * kGsaVector * run.out_channel;
        const GsaAffine<2>& affine = affines.of[tile];
        const float* const sum = sums.value[i / 2][tile] + i % 2 * 2;
        const uint32_t pair = valid ? RoundPair(sum[0] * affine.scale[0] + affine.shift[0],
                                                sum[1] * affine.scale[1] + affine.shift[1], T())
                                    : 0u;
        if (run.out_pairs) {
          StorePair(pair, to);
        } else {
          T elements[2];
          __builtin_memcpy(elements, &pair, sizeof(pair));
          to[0] = elements[0];
          if (channel + tile * kGsaVector + 1 < run.values.channels) to[run.out_channel] = elements[1];
        }
      }
    }
  }

  // Calls visit(first, depth) for steps of the key channels, or once for all of them if they are held.
  template <typename Visit>
  __device__ static void ForDepths(const GsaAxis& run, const Visit& visit) {
    if constexpr (kHeld) {
      visit(0, HeldDepth(run));
    } else {
      SACCADE_UNROLL_BY(1)
      for (int first = 0; first < run.q.stride; first += kDepth) {
        visit(first, run.q.stride - first < kDepth ? run.q.stride - first : kDepth);
      }
    }
  }

  __device__ static int HeldDepth(const GsaAxis& run) { return kEight ? kGsaVector : run.q.stride; }

  // All distances between positions of a line, whose number is rounded up.
  __host__ __device__ static Distances AllOf(int keys) {
    constexpr int kStep = kEight ? GsaAxis::kKeys : 8;
    const int base = (keys + GsaAxis::kOwn - 1) / GsaAxis::kOwn * GsaAxis::kOwn - 1;
    return {base, base + (keys + kStep - 1) / kStep * kStep};
  }

 public:
  // Returns true if lines of this length, padding included, can be held.
  static bool CanHold(int length, int depth) {
    return length <= kHeldKeys && depth <= (kEight ? kGsaVector : kMaxDepth) &&
           AllOf(length).count * RowWords(depth) <= kEmbeddingWords;
  }

  __device__ static void Run(const GsaAxis& run) {
    SACCADE_SHARED(uint32_t, scores, GsaAxis::kOwn* kScoreOwn);
    SACCADE_SHARED(uint32_t, values, kLines* kValueLine);
    SACCADE_SHARED(uint32_t, embedding, kEmbeddingWords);
    SACCADE_SHARED(uint32_t, context, kContextWords);
    const Shared shared = {scores, values, embedding, context};
    const GsaAxisPlace place(run, kLines, kChannels);
    const int keys = place.IsEmpty() ? 0 : place.Keys(run);
    const Distances all_distances = AllOf(keys);
    if constexpr (kHeld) {
      SACCADE_UNROLL_BY(1)
      for (int key = 0; key < keys; key += GsaAxis::kKeys) FillValues(run, place, key, values);
      if (keys > 0) FillEmbedding(run, all_distances, 0, HeldDepth(run), embedding);
      if (run.context != nullptr) FillContext(run, place, 0, HeldDepth(run), context);
    }
    T* const out = static_cast<T*>(run.out) + Kept(place.OutOffset(run));
    const T* const q = static_cast<const T*>(run.q.data) + Kept(place.OffsetIn(run.q));
    Affines affines;
    SACCADE_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      affines.of[tile] = GsaAffine<2>(run, place, place.first_channel + tile * kGsaVector + 2 * InGroup());
    }
    SACCADE_UNROLL_BY(1)
    for (int own = place.first_own; own < place.OwnEnd(run); own += run.own_blocks * GsaAxis::kOwn) {
      Sums sums;
      SACCADE_UNROLL
      for (int i = 0; i < kOwnLines; ++i) sums.top[i][0] = sums.top[i][1] = -INFINITY;
      const int keys_of_tile = own < place.length ? keys : 0;  // otherwise all of it is padding
      SACCADE_UNROLL_BY(1)
      for (int key = 0; key < keys_of_tile; key += GsaAxis::kKeys) {
        __syncthreads();
        if constexpr (!kHeld) FillValues(run, place, key, values);
        SACCADE_UNROLL_BY(1)
        for (int i = 0; i < kOwnLines; ++i) {
          const int row = FirstOfWarp() + i;
          Scores part = {};
          ForDepths(run, [&](int first, int count) {
            Distances distances = all_distances;
            if constexpr (!kHeld) {
              distances = {own + GsaAxis::kOwn - 1 - key, GsaAxis::kDistances};
              __syncthreads();
              FillEmbedding(run, distances, first, count, embedding);
              __syncthreads();
            }
            MultiplyEmbedding(run, place, q + first, distances, own + row, key, count, embedding, part);
          });
          StoreScores(part, row, scores);
        }
        __syncthreads();
        MultiplyValues(run, place, own, key, shared, sums);
      }
      if constexpr (kSoftmax) {
        SACCADE_UNROLL
        for (int i = 0; i < kOwnLines * 2; ++i) {
          float total = sums.total[i / 2][i % 2];
          for (int lanes = 1; lanes < 4; lanes *= 2) total += __shfl_xor_sync(kWholeWarp, total, lanes);
          SACCADE_UNROLL
          for (int j = 0; j < kTiles * 2; ++j) sums.value[i / 2][j / 2][i % 2 * 2 + j % 2] /= total;
        }
      }
      if (run.context != nullptr && own < place.length && !place.IsEmpty()) {
        ForDepths(run, [&](int first, int count) {
          if constexpr (!kHeld) {
            __syncthreads();
            FillContext(run, place, first, count, context);
          }
          if (!kHeld || keys == 0) __syncthreads();
          MultiplyContext(run, place, q + first, own, count, context, sums);
        });
      }
      Store(run, place, own, affines, out, sums);
    }
  }
};

}  // namespace saccade::kernels
