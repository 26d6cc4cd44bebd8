// Included only by sao_portable.cc, sao_avx2.cc and sao_avx512.cc, each compiled with its own flags.
#pragma once

#include <type_traits>

#include "kernels/common/vec.h"
#include "kernels/sao/sao_blocks.h"

namespace saccade::kernels::SACCADE_ISA {

// Calls visit(first lane, number of lanes) over [0, count): whole vectors, then the rest.
template <typename A, typename Visit>
inline void ForLanes(int64_t count, const Visit& visit) {
  int64_t i = 0;
  for (; i + kLanes<A> <= count; i += kLanes<A>) visit(i, kLanes<A>);
  if (i < count) visit(i, count - i);
}

template <typename T>
inline Vec<Accumulate<T>> LoadUpTo(const T* from, int64_t count) {
  return count == kLanes<Accumulate<T>> ? Load(from) : LoadPart(from, count);
}

template <typename T>
inline void StoreUpTo(T* to, Vec<Accumulate<T>> v, int64_t count) {
  count == kLanes<Accumulate<T>> ? Store(to, v) : StorePart(to, v, count);
}

// Adds kRows channels at a time, each read along positions; the scores stay in the L1 cache.
template <int kRows, typename T, typename A>
inline void AddScores(const T* x, int64_t stride, int64_t positions, const A* w, A* scores) {
  ForLanes<A>(positions, [&](int64_t p, int64_t lanes) {
    Vec<A> sum = LoadUpTo(x + p, lanes) * w[0];
    for (int c = 1; c < kRows; ++c) sum += LoadUpTo(x + c * stride + p, lanes) * w[c];
    Store(scores + p, Load(scores + p) + sum);
  });
}

template <typename T, typename A = Accumulate<T>>
void ScoresAlongPositions(const SaoBlock<const T>& x, const A* w, int64_t heads, A* scores, int64_t row) {
  constexpr int kRows = 8;
  const int64_t head_channels = x.channels / heads;
  for (int64_t h = 0; h < heads; ++h) {
    A* out = scores + h * row;
    ForLanes<A>(x.positions, [&](int64_t p, int64_t) { Store(out + p, Vec<A>{}); });
    int64_t c = h * head_channels;
    const int64_t end = c + head_channels;
    for (; c + kRows <= end; c += kRows) {
      AddScores<kRows>(x.data + c * x.channel_stride, x.channel_stride, x.positions, w + c, out);
    }
    for (; c < end; ++c) AddScores<1>(x.data + c * x.channel_stride, 0, x.positions, w + c, out);
  }
}

template <typename T, typename A = Accumulate<T>>
void ScoresAlongChannels(const SaoBlock<const T>& x, const A* w, int64_t heads, A* scores, int64_t row) {
  const int64_t head_channels = x.channels / heads;
  for (int64_t p = 0; p < x.positions; ++p) {
    for (int64_t h = 0; h < heads; ++h) {
      const T* channels = x.data + p * x.position_stride + h * head_channels;
      Vec<A> sum{};
      ForLanes<A>(head_channels, [&](int64_t c, int64_t lanes) {
        sum += LoadUpTo(channels + c, lanes) * LoadUpTo(w + h * head_channels + c, lanes);
      });
      scores[h * row + p] = Sum<A>(sum);
    }
  }
}

template <typename T, typename A = Accumulate<T>>
void Scores(const SaoBlock<const T>& x, const A* w, int64_t heads, A* scores, int64_t row) {
  x.positions_adjacent ? ScoresAlongPositions(x, w, heads, scores, row)
                       : ScoresAlongChannels(x, w, heads, scores, row);
}

// Computes kChannels x kRows sums in registers; a channel is read once for all rows.
template <int kChannels, int kRows, typename T, typename A = Accumulate<T>>
inline void MomentsAlongPositions(const SaoBlock<const T>& x, int64_t channel, const A* rows, int64_t row,
                                  A* moments, int64_t moments_row) {
  Vec<A> sums[kChannels][kRows] = {};
  const T* data = x.data + channel * x.channel_stride;
  ForLanes<A>(x.positions, [&](int64_t p, int64_t lanes) {
    Vec<A> values[kChannels];
    for (int c = 0; c < kChannels; ++c) values[c] = LoadUpTo(data + c * x.channel_stride + p, lanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec<A> scores = Load(rows + r * row + p);
      for (int c = 0; c < kChannels; ++c) sums[c][r] += values[c] * scores;
    }
  });
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kChannels; ++c) moments[r * moments_row + channel + c] += Sum<A>(sums[c][r]);
  }
}

// Computes kVectors vectors of channels x kRows sums in registers, over positions [begin, end).
template <int kVectors, int kRows, typename T, typename A = Accumulate<T>>
inline void MomentsAlongChannels(const SaoBlock<const T>& x, int64_t begin, int64_t end, int64_t channel,
                                 int64_t lanes, const A* rows, int64_t row, A* moments, int64_t moments_row) {
  Vec<A> sums[kVectors][kRows] = {};
  for (int64_t p = begin; p < end; ++p) {
    const T* data = x.data + p * x.position_stride + channel;
    Vec<A> values[kVectors];
    for (int v = 0; v < kVectors; ++v) values[v] = LoadUpTo(data + v * kLanes<A>, lanes);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[v][r] += values[v] * rows[r * row + p];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      A* to = moments + r * moments_row + channel + v * kLanes<A>;
      StoreUpTo(to, LoadUpTo(to, lanes) + sums[v][r], lanes);
    }
  }
}

// AVX-512 has 32 registers, the other sets have 16.
inline constexpr int kMomentVectors = SACCADE_VECTOR_BYTES == 64 ? 4 : 2;

template <int kRows, typename T, typename A = Accumulate<T>>
void MomentsOfRows(const SaoBlock<const T>& x, const A* rows, int64_t row, A* moments, int64_t moments_row) {
  int64_t c = 0;
  if (x.positions_adjacent) {
    for (; c + kMomentVectors <= x.channels; c += kMomentVectors) {
      MomentsAlongPositions<kMomentVectors, kRows>(x, c, rows, row, moments, moments_row);
    }
    for (; c < x.channels; ++c) MomentsAlongPositions<1, kRows>(x, c, rows, row, moments, moments_row);
    return;
  }
  // Short runs keep the positions in the L1 cache, and limit the rounding error of long sums.
  constexpr int64_t kRunLength = 64;
  constexpr int64_t kWide = kMomentVectors * kLanes<A>;
  for (int64_t begin = 0; begin < x.positions; begin += kRunLength) {
    const int64_t end = begin + kRunLength < x.positions ? begin + kRunLength : x.positions;
    for (c = 0; c + kWide <= x.channels; c += kWide) {
      MomentsAlongChannels<kMomentVectors, kRows>(x, begin, end, c, kLanes<A>, rows, row, moments,
                                                  moments_row);
    }
    ForLanes<A>(x.channels - c, [&](int64_t at, int64_t lanes) {
      MomentsAlongChannels<1, kRows>(x, begin, end, c + at, lanes, rows, row, moments, moments_row);
    });
  }
}

template <typename T, typename A = Accumulate<T>>
void Moments(const SaoBlock<const T>& x, const A* rows, int64_t row_count, int64_t row, A* moments,
             int64_t moments_row) {
  while (row_count > 0) {
    int64_t done = 5;  // a row of ones and four heads: one pass for the module with four heads
    if (row_count >= 5) {
      MomentsOfRows<5>(x, rows, row, moments, moments_row);
    } else if (row_count >= 2) {
      MomentsOfRows<2>(x, rows, row, moments, moments_row);
      done = 2;
    } else {
      MomentsOfRows<1>(x, rows, row, moments, moments_row);
      done = 1;
    }
    rows += done * row;
    moments += done * moments_row;
    row_count -= done;
  }
}

template <bool kResidual, typename T, typename A = Accumulate<T>>
void ApplyAlongPositions(const SaoBlock<const T>& x, const A* slope, const A* offset, int64_t heads,
                         const A* scores, int64_t row, const SaoBlock<T>& out) {
  const int64_t head_channels = out.channels / heads;
  for (int64_t c = 0; c < out.channels; ++c) {
    const A* head_scores = scores + c / head_channels * row;
    ForLanes<A>(out.positions, [&](int64_t p, int64_t lanes) {
      Vec<A> y = Load(head_scores + p) * slope[c] + offset[c];
      if constexpr (kResidual) y += LoadUpTo(x.data + c * x.channel_stride + p, lanes);
      StoreUpTo(out.data + c * out.channel_stride + p, y, lanes);
    });
  }
}

template <bool kResidual, typename T, typename A = Accumulate<T>>
void ApplyAlongChannels(const SaoBlock<const T>& x, const A* slope, const A* offset, int64_t heads,
                        const A* scores, int64_t row, const SaoBlock<T>& out) {
  const int64_t head_channels = out.channels / heads;
  for (int64_t p = 0; p < out.positions; ++p) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t begin = h * head_channels;
      const A score = scores[h * row + p];
      ForLanes<A>(head_channels, [&](int64_t at, int64_t lanes) {
        const int64_t c = begin + at;
        Vec<A> y = LoadUpTo(slope + c, lanes) * score + LoadUpTo(offset + c, lanes);
        if constexpr (kResidual) y += LoadUpTo(x.data + p * x.position_stride + c, lanes);
        StoreUpTo(out.data + p * out.position_stride + c, y, lanes);
      });
    }
  }
}

template <typename T, typename A = Accumulate<T>>
void Apply(const SaoBlock<const T>* x, const A* slope, const A* offset, int64_t heads, const A* scores,
           int64_t row, const SaoBlock<T>& out) {
  const auto run = [&](const auto& residual, const SaoBlock<const T>& from) {
    constexpr bool kResidual = std::remove_cvref_t<decltype(residual)>::value;
    out.positions_adjacent ? ApplyAlongPositions<kResidual>(from, slope, offset, heads, scores, row, out)
                           : ApplyAlongChannels<kResidual>(from, slope, offset, heads, scores, row, out);
  };
  x != nullptr ? run(std::true_type{}, *x) : run(std::false_type{}, SaoBlock<const T>{});
}

template <typename A>
void Transform(const A* weight, int64_t row_count, int64_t columns, const A* x, const A* y, A* first,
               A* second) {
  for (int64_t i = 0; i < row_count; ++i) {
    Vec<A> with_x{}, with_y{};
    ForLanes<A>(columns, [&](int64_t c, int64_t lanes) {
      const Vec<A> w = LoadUpTo(weight + i * columns + c, lanes);
      with_x += w * LoadUpTo(x + c, lanes);
      with_y += w * LoadUpTo(y + c, lanes);
    });
    first[i] = Sum<A>(with_x);
    second[i] = Sum<A>(with_y);
  }
}

template <typename T>
inline constexpr SaoBlockCode<T> kBlockCode = {&Scores<T>, &Moments<T>, &Apply<T>, &Transform<Accumulate<T>>};

}  // namespace saccade::kernels::SACCADE_ISA
