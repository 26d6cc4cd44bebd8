// Softmax attention of one tile of queries over any number of keys, one block of keys at a time. The
// accumulated output is rescaled whenever a later block holds a larger logit, so only one block's logits
// exist at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/common/arena.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {

// Attention of one tile. Call Begin(), then Add() for each block of keys, then End(). Not thread-safe: use
// one object per thread.
template <typename A>
class TileAttention {
 public:
  // Handles blocks of at most `max_keys` keys. Takes its scratch memory from `arena`.
  TileAttention(const TileCode<A>& code, int64_t max_keys, Arena* arena) : code_(code) {
    logits_ = arena->Take<A>(max_keys * kTile);
    max_ = arena->Take<A>(kTile);
    sum_ = arena->Take<A>(kTile);
    factor_ = arena->Take<A>(kTile);
  }

  // Starts a tile of queries. `queries` is a tile [key_channels][kTile], already scaled, whose first `count`
  // columns are used; `out` is a tile [value_channels][kTile]. At least one key must be added before End().
  void Begin(const A* queries, int64_t count, int64_t key_channels, A* out, int64_t value_channels) {
    queries_ = queries;
    count_ = count;
    key_channels_ = key_channels;
    out_ = out;
    value_channels_ = value_channels;
    first_ = true;
    for (int64_t j = 0; j < kTile; ++j) {
      max_[j] = -std::numeric_limits<A>::infinity();
      sum_[j] = A{0};
    }
  }

  // Adds a block of keys. `keys` is [count][key_channels] and `values` is [value_channels][count].
  void Add(const MatrixView<A>& keys, const MatrixView<A>& values, int64_t count) {
    code_.product(count, count_, key_channels_, keys, queries_, kTile, logits_, kTile, false);
    const bool rescale = code_.online_softmax(logits_, count, count_, kTile, max_, sum_, factor_);
    if (rescale && !first_) code_.scale_columns(out_, value_channels_, count_, kTile, factor_);
    code_.product(value_channels_, count_, count, values, logits_, kTile, out_, kTile, !first_);
    first_ = false;
  }

  void End() {
    for (int64_t j = 0; j < kTile; ++j) factor_[j] = A{1} / sum_[j];
    code_.scale_columns(out_, value_channels_, count_, kTile, factor_);
  }

  // Used instead of Add() and End() for attention without softmax: the logits themselves are the
  // coefficients, and the result is `factor` times the sum of the values weighted by them.
  void AddPlain(const MatrixView<A>& keys, const MatrixView<A>& values, int64_t count) {
    code_.product(count, count_, key_channels_, keys, queries_, kTile, logits_, kTile, false);
    code_.product(value_channels_, count_, count, values, logits_, kTile, out_, kTile, !first_);
    first_ = false;
  }
  void EndPlain(A factor) {
    for (int64_t j = 0; j < kTile; ++j) factor_[j] = factor;
    code_.scale_columns(out_, value_channels_, count_, kTile, factor_);
  }

 private:
  const TileCode<A>& code_;
  A *logits_, *max_, *sum_, *factor_;
  const A* queries_ = nullptr;
  A* out_ = nullptr;
  int64_t count_ = 0, key_channels_ = 0, value_channels_ = 0;
  bool first_ = true;
};

}  // namespace saccade::kernels
