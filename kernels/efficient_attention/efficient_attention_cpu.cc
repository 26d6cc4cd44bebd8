// Three steps, each over tiles of 64 positions (see kernels/tile):
//   gather   per split of the positions: the keys' softmax so far (max and sum a key channel) and what it
//   gathers,
//            S = sum_n P_n x_n^T. Keys are [positions][dk], so that the softmax runs down columns.
//   combine  per sample: the splits merged in their order, then values, their bias and the last projection
//   applied
//            to S: one small matrix M [out channels][dk] a sample.
//   apply    y = M softmax(Wq x + bq) + bo (+ x).
// The bare operator takes the same steps with v in x's place and no weights.
#include "kernels/efficient_attention/efficient_attention_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/arena.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kMaxSplits = 16;
constexpr int64_t kTilesPerSplit = 8;  // at least, so that merging splits stays cheap
constexpr int64_t kOutRows = 256;      // of a result in scratch at a time: keeps it in the second-level cache

int64_t SplitsOf(int64_t positions) {
  return std::clamp<int64_t>(DivideUp(positions, kTile * kTilesPerSplit), 1, kMaxSplits);
}

template <typename A>
class EaRun {
 public:
  EaRun(const EfficientAttentionProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        code_(TileCodeFor<A>(isa)),
        module_(IsModule(problem)),
        gathered_(module_ ? p_.channels : p_.value_channels),
        // Where heads do not end at a padded column, what is written of one runs on into the next.
        key_row_(RoundUp(p_.key_channels, kRowPadding) +
                 (p_.key_channels / p_.heads % kRowPadding == 0 ? 0 : kRowPadding)),
        splits_(SplitsOf(PositionsOf(p_.extent))) {
    Arena arena(base);
    key_weight_ = arena.Take<A>(module_ ? p_.channels * key_row_ : 0);
    max_ = arena.Take<A>(p_.batch * splits_ * key_row_);
    sum_ = arena.Take<A>(p_.batch * splits_ * key_row_);
    sums_ = arena.Take<A>(p_.batch * splits_ * gathered_ * key_row_);
    matrix_ = arena.Take<A>(p_.batch * p_.out_channels * key_row_);
    x_ = arena.Take<A>(threads * std::max(gathered_, module_ ? p_.channels : int64_t{0}) * kTile);
    // Keys are [kTile][key_row_] and queries [dk][kTile].
    small_ = arena.Take<A>(threads * kTile * key_row_);
    rescale_ = arena.Take<A>(threads * key_row_);
    out_ = arena.Take<A>(threads * std::min(p_.out_channels, kOutRows) * kTile);
    values_ = arena.Take<A>(threads * p_.value_channels * key_row_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    if (module_) {
      code_.transpose(Weights(p_.key_weight), p_.key_channels, p_.channels, p_.channels, key_weight_,
                      key_row_);
    }
    parallel.run(p_.batch * splits_, 1, [this](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) Gather(i / splits_, i % splits_, thread);
    });
    parallel.run(p_.batch, 1, [this](int64_t b, int64_t end, int thread) {
      for (; b < end; ++b) Combine(b, thread);
    });
    const int64_t tiles = DivideUp(PositionsOf(p_.extent), kTile);
    parallel.run(p_.batch * tiles, 1, [this, tiles](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) Apply(i / tiles, i % tiles * kTile, thread);
    });
  }

 private:
  static const A* Weights(const void* data) { return static_cast<const A*>(data); }
  A* SmallOf(int thread) const { return small_ + thread * kTile * key_row_; }
  A* XOf(int thread) const { return x_ + thread * gathered_ * kTile; }
  A* SumsAt(int64_t sample, int64_t split) const {
    return sums_ + (sample * splits_ + split) * gathered_ * key_row_;
  }
  A* PerKey(A* base, int64_t sample, int64_t split) const {
    return base + (sample * splits_ + split) * key_row_;
  }
  const FeatureMap& GatheredMap() const { return module_ ? p_.x : p_.v; }

  // keys[i][j] of `count` positions, from the tile of x, or as given.
  void LoadKeys(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, const A* x,
                A* keys) const {
    if (!module_) {
      LoadPositions(code_, p_.k, p_.dtype, sample, box, 0, p_.key_channels, begin, count, keys, key_row_);
      return;
    }
    code_.product(count, p_.key_channels, p_.channels, {x, 1, kTile}, key_weight_, key_row_, keys, key_row_,
                  false);
    const A* bias = Weights(p_.key_bias);
    if (p_.softmax || bias == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < p_.key_channels; ++j) keys[i * key_row_ + j] += bias[j];
    }
  }

  void Gather(int64_t sample, int64_t split, int thread) {
    const ValidBox box(p_.extent, sample);
    A* max = PerKey(max_, sample, split);
    A* sum = PerKey(sum_, sample, split);
    A* sums = SumsAt(sample, split);
    std::fill_n(max, key_row_, -std::numeric_limits<A>::infinity());
    std::fill_n(sum, key_row_, A{0});
    std::fill_n(sums, gathered_ * key_row_, A{0});
    const int64_t positions = box.positions();
    const int64_t length = RoundUp(DivideUp(positions, SplitsOf(positions)), kTile);
    const int64_t last = std::min((split + 1) * length, positions);
    A* x = XOf(thread);
    A* keys = SmallOf(thread);
    A* rescale = rescale_ + thread * key_row_;
    for (int64_t begin = split * length; begin < last; begin += kTile) {
      const int64_t count = std::min(kTile, last - begin);
      LoadTile(code_, GatheredMap(), p_.dtype, sample, box, 0, gathered_, begin, count, x);
      LoadKeys(sample, box, begin, count, x, keys);
      if (!p_.softmax) {
        code_.add_column_sums(keys, count, p_.key_channels, key_row_, sum);
      } else if (code_.online_softmax(keys, count, p_.key_channels, key_row_, max, sum, rescale) &&
                 begin > split * length) {
        code_.scale_columns(sums, gathered_, p_.key_channels, key_row_, rescale);
      }
      code_.product(gathered_, p_.key_channels, count, {x, kTile, 1}, keys, key_row_, sums, key_row_, true);
    }
  }

  // Into the first split: S with the softmax's denominators divided out, or divided by N.
  void MergeSplits(int64_t sample, const ValidBox& box) {
    const int64_t splits = SplitsOf(box.positions());
    A* sums = SumsAt(sample, 0);
    A* max = PerKey(max_, sample, 0);
    A* sum = PerKey(sum_, sample, 0);
    for (int64_t j = 0; j < p_.key_channels; ++j) {
      A largest = max[j];
      for (int64_t s = 1; s < splits; ++s) largest = std::max(largest, PerKey(max_, sample, s)[j]);
      // What a split's sums are to be scaled by, in place of its max.
      A total = 0;
      for (int64_t s = 0; s < splits; ++s) {
        A& own = PerKey(max_, sample, s)[j];
        own = !p_.softmax || own == largest ? A{1} : std::exp(own - largest);
        total += own * PerKey(sum_, sample, s)[j];
      }
      const A divisor = p_.softmax ? total : static_cast<A>(box.positions());
      for (int64_t s = 0; s < splits; ++s) PerKey(max_, sample, s)[j] /= divisor;
      // What the keys of all positions add up to: meets the values' bias.
      sum[j] = total / divisor;
    }
    code_.scale_columns(sums, gathered_, p_.key_channels, key_row_, max);
    for (int64_t s = 1; s < splits; ++s) {
      const A* part = SumsAt(sample, s);
      const A* scale = PerKey(max_, sample, s);
      for (int64_t c = 0; c < gathered_; ++c) {
        for (int64_t j = 0; j < p_.key_channels; ++j)
          sums[c * key_row_ + j] += part[c * key_row_ + j] * scale[j];
      }
    }
  }

  void Combine(int64_t sample, int thread) {
    const ValidBox box(p_.extent, sample);
    ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.out_channels);
    if (box.positions() == 0) return;
    MergeSplits(sample, box);
    A* matrix = matrix_ + sample * p_.out_channels * key_row_;
    const int64_t head_keys = p_.key_channels / p_.heads;
    const int64_t head_values = p_.value_channels / p_.heads;
    for (int64_t head = 0; head < p_.heads; ++head) {
      const int64_t column = head * head_keys;
      const A* sums = SumsAt(sample, 0) + column;
      if (!module_) {
        const int64_t row = head * head_values;
        for (int64_t c = row; c < row + head_values; ++c) {
          std::copy_n(sums + c * key_row_, head_keys, matrix + c * key_row_ + column);
        }
        continue;
      }
      ModuleMatrix(head, sums, PerKey(sum_, sample, 0) + column, matrix + column, thread);
    }
  }

  // M of one head: the values' weights and bias applied to S, then the last projection.
  void ModuleMatrix(int64_t head, const A* sums, const A* key_sums, A* matrix, int thread) const {
    const int64_t head_keys = p_.key_channels / p_.heads;
    const int64_t head_values = p_.value_channels / p_.heads;
    const int64_t first = head * head_values;
    A* values = values_ + thread * p_.value_channels * key_row_;
    code_.product(head_values, head_keys, p_.channels,
                  {Weights(p_.value_weight) + first * p_.channels, p_.channels, 1}, sums, key_row_, values,
                  key_row_, false);
    if (const A* bias = Weights(p_.value_bias); bias != nullptr) {
      for (int64_t c = 0; c < head_values; ++c) {
        for (int64_t j = 0; j < head_keys; ++j) values[c * key_row_ + j] += bias[first + c] * key_sums[j];
      }
    }
    if (p_.out_weight != nullptr) {
      code_.product(p_.out_channels, head_keys, head_values,
                    {Weights(p_.out_weight) + first, p_.value_channels, 1}, values, key_row_, matrix,
                    key_row_, false);
      return;
    }
    for (int64_t c = 0; c < head_values; ++c) {
      std::copy_n(values + c * key_row_, head_keys, matrix + (first + c) * key_row_);
    }
  }

  void Apply(int64_t sample, int64_t begin, int thread) {
    const ValidBox box(p_.extent, sample);
    const int64_t count = std::min(kTile, box.positions() - begin);
    if (count <= 0) return;
    A* x = XOf(thread);
    A* queries = SmallOf(thread);
    if (module_) {
      LoadTile(code_, p_.x, p_.dtype, sample, box, 0, p_.channels, begin, count, x);
      code_.product(p_.key_channels, kTile, p_.channels, {Weights(p_.query_weight), p_.channels, 1}, x, kTile,
                    queries, kTile, false);
      if (p_.query_bias != nullptr) {
        code_.affine(queries, p_.key_channels, kTile, kTile, nullptr, Weights(p_.query_bias), nullptr);
      }
    } else {
      LoadTile(code_, p_.q, p_.dtype, sample, box, 0, p_.key_channels, begin, count, queries);
    }
    const int64_t head_keys = p_.key_channels / p_.heads;
    for (int64_t head = 0; p_.softmax && head < p_.heads; ++head) {
      code_.softmax(queries + head * head_keys * kTile, head_keys, kTile, kTile);
    }
    // Without a matrix that mixes them, a head's queries meet its own rows alone.
    const bool mixed = p_.out_weight != nullptr;
    const int64_t groups = mixed ? 1 : p_.heads;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t keys = p_.key_channels / groups;
      const int64_t rows = p_.out_channels / groups;
      const A* matrix = matrix_ + sample * p_.out_channels * key_row_ + group * (rows * key_row_ + keys);
      WriteRows(sample, box, begin, count, group * rows, rows, matrix, queries + group * keys * kTile, keys,
                x, thread);
    }
  }

  void WriteRows(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, int64_t first,
                 int64_t rows, const A* matrix, const A* queries, int64_t keys, const A* x,
                 int thread) const {
    A* out = out_ + thread * std::min(p_.out_channels, kOutRows) * kTile;
    const A* bias = Weights(p_.out_bias);
    for (int64_t at = 0; at < rows; at += kOutRows) {
      const int64_t block = std::min(kOutRows, rows - at);
      code_.product(block, kTile, keys, {matrix + at * key_row_, key_row_, 1}, queries, kTile, out, kTile,
                    false);
      if (bias != nullptr || p_.residual) {
        code_.affine(out, block, kTile, kTile, nullptr, bias == nullptr ? nullptr : bias + first + at,
                     p_.residual ? x + (first + at) * kTile : nullptr);
      }
      StoreTile(code_, out, p_.out, p_.dtype, sample, box, first + at, block, begin, count);
    }
  }

  const EfficientAttentionProblem& p_;
  const TileCode<A>& code_;
  const bool module_;
  const int64_t gathered_;  // channels that the keys' softmax gathers: of x, or of v
  const int64_t key_row_;
  const int64_t splits_;
  size_t bytes_;
  A* key_weight_;                              // [C][key_row_], transposed
  A *max_, *sum_;                              // [B][splits][key_row_]
  A* sums_;                                    // [B][splits][gathered_][key_row_]
  A* matrix_;                                  // [B][out_channels][key_row_]
  A *x_, *small_, *rescale_, *out_, *values_;  // a thread's own
};

}  // namespace

template <typename A>
size_t EaCpuWorkspaceBytes(const EfficientAttentionProblem& problem, int threads) {
  return EaRun<A>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
}

template <typename A>
void RunEaCpu(const EfficientAttentionProblem& problem, CpuIsa isa, const Parallel& parallel,
              std::byte* workspace) {
  EaRun<A>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template size_t EaCpuWorkspaceBytes<float>(const EfficientAttentionProblem&, int);
template size_t EaCpuWorkspaceBytes<double>(const EfficientAttentionProblem&, int);
template void RunEaCpu<float>(const EfficientAttentionProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunEaCpu<double>(const EfficientAttentionProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
