// Included only by gsa_portable.cc, gsa_avx2.cc and gsa_avx512.cc, each compiled with its own flags.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/gsa/gsa_lines.h"

namespace saccade::kernels::SACCADE_ISA {

// Number of sums kept in registers at a time.
inline constexpr int kSumsAtOnce = 8;

// Handles the last `left` <= kCount items of ForBlocks.
template <int kCount, typename Run>
inline void ForLast(int64_t first, int64_t left, const Run& run) {
  if constexpr (kCount > 0) {
    if (left == kCount) {
      run.template operator()<kCount>(first);
    } else {
      ForLast<kCount - 1>(first, left, run);
    }
  }
}

// Calls run.template operator()<count>(first) over [0, total): kSumsAtOnce at a time, then the rest.
template <typename Run>
inline void ForBlocks(int64_t total, const Run& run) {
  int64_t first = 0;
  for (; first + kSumsAtOnce <= total; first += kSumsAtOnce) run.template operator()<kSumsAtOnce>(first);
  ForLast<kSumsAtOnce - 1>(first, total - first, run);
}

template <int kCount, bool kKeys, typename A>
inline void ScoresOf(int64_t channels, const A* query, const A* embedding, const A* keys, A* scores) {
  Vec<A> sums[kCount] = {};
  for (int64_t c = 0; c < channels; ++c) {
    const Vec<A> q = Load(query + c * kLines);
    for (int i = 0; i < kCount; ++i) {
      const A r = embedding[i * channels + c];
      if constexpr (kKeys) {
        sums[i] += q * (Load(keys + (i * channels + c) * kLines) + r);
      } else {
        sums[i] += q * r;
      }
    }
  }
  for (int i = 0; i < kCount; ++i) Store(scores + i * kLines, sums[i]);
}

template <typename A>
void LineScores(int64_t length, int64_t channels, const A* query, const A* embedding, const A* keys,
                A* scores) {
  for (int64_t line = 0; line < kLines; line += kLanes<A>) {
    ForBlocks(length, [&]<int kCount>(int64_t i) {
      const A* r = embedding + i * channels;
      A* to = scores + i * kLines + line;
      if (keys == nullptr) {
        ScoresOf<kCount, false, A>(channels, query + line, r, nullptr, to);
      } else {
        ScoresOf<kCount, true, A>(channels, query + line, r, keys + i * channels * kLines + line, to);
      }
    });
  }
}

// Adds a part of the positions, for kCount channels and one vector of lines.
template <int kCount, typename A>
inline void WeighPart(int64_t length, int64_t channels, const A* scores, const A* values, A* out,
                      bool first) {
  Vec<A> sums[kCount] = {};
  for (int64_t i = 0; i < length; ++i) {
    const Vec<A> s = Load(scores + i * kLines);
    for (int j = 0; j < kCount; ++j) sums[j] += s * Load(values + (i * channels + j) * kLines);
  }
  for (int j = 0; j < kCount; ++j) {
    A* to = out + j * kLines;
    Store(to, first ? sums[j] : Load(to) + sums[j]);
  }
}

template <typename A>
void WeighLines(int64_t length, int64_t channels, const A* scores, const A* values, A* out) {
  // Sums are split into parts, because one long sum would have a larger rounding error.
  constexpr int64_t kPartLength = 32;
  for (int64_t line = 0; line < kLines; line += kLanes<A>) {
    ForBlocks(channels, [&]<int kCount>(int64_t v) {
      for (int64_t i = 0; i < length; i += kPartLength) {
        WeighPart<kCount>(length - i < kPartLength ? length - i : kPartLength, channels,
                          scores + i * kLines + line, values + (i * channels + v) * kLines + line,
                          out + v * kLines + line, i == 0);
      }
    });
  }
}

template <typename A>
inline constexpr GsaLineCode<A> kLineCode = {.scores = &LineScores<A>, .weigh = &WeighLines<A>};

}  // namespace saccade::kernels::SACCADE_ISA
