// Three steps, each over ranges of 64 to 256 positions in tiles of as many columns (see kernels/tile):
//   gather   per split of the positions: the running softmax of the keys (max and sum per key channel) and
//            S = sum_n P_n x_n^T. Keys are [positions][dk], so that the softmax runs down columns.
//   combine  per sample: merges the splits in order, then applies the values' weight and bias and the output
//            projection to S: one small matrix M [out channels][dk] per sample.
//   apply    y = M softmax(Wq x + bq) + bo (+ x).
// The bare operator runs the same steps with v instead of x and no weights.
#include "kernels/efficient_attention/efficient_attention_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/arena.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kMaxSplits = 16;
constexpr int64_t kMinTilesPerSplit = 3;          // keeps merging of splits cheap
constexpr int64_t kMergedRows = 128;              // rows of S or M per task
constexpr int64_t kValueRows = 12;                // value rows per task
constexpr int64_t kMaxSerialElements = 64 * 128;  // up to so many elements of S, one thread combines a sample
constexpr int64_t kOutRows = 64;          // result rows in scratch at a time, which then stay in the cache
constexpr int64_t kMaxWidth = 4 * kTile;  // maximum number of positions at a time
constexpr int64_t kMaxTileElements = 64 * 1024;  // maximum number of elements of a tile; fits in the L2 cache

// Upper bound of SplitsOf() for this many positions or fewer.
int64_t MaxSplits(int64_t positions) {
  return std::clamp<int64_t>(DivideUp(positions, kTile * kMinTilesPerSplit), 1, kMaxSplits);
}

int64_t SplitLength(int64_t positions) {
  return std::max(RoundUp(DivideUp(positions, MaxSplits(positions)), kTile), kTile);
}

int64_t SplitsOf(int64_t positions) {
  return std::max<int64_t>(DivideUp(positions, SplitLength(positions)), 1);
}

// Returns the number of positions to process at a time: many, because a map's channels are far apart in
// memory and short accesses are slow; but not more than the cache holds, and few enough to distribute work
// over the threads.
int64_t WidthOf(int64_t channels, int64_t positions) {
  const int64_t cached = kMaxTileElements / channels / kTile * kTile;
  const int64_t shared = RoundUp(DivideUp(positions, 8), kTile);
  return std::clamp(std::min(cached, shared), kTile, kMaxWidth);
}

template <typename A>
class EaRun {
 public:
  EaRun(const EfficientAttentionProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        code_(TileCodeFor<A>(isa, p_.dtype)),
        module_(IsModule(problem)),
        gathered_(module_ ? p_.channels : p_.value_channels),
        // If a head does not end at a padded column, the padding written after it overlaps the next head.
        key_row_(RoundUp(p_.key_channels, kRowPadding) +
                 (p_.key_channels / p_.heads % kRowPadding == 0 ? 0 : kRowPadding)),
        // An upper bound: the width of a padded sample is never larger.
        width_(WidthOf(std::max(gathered_, p_.key_channels), PositionsOf(p_.extent))),
        // An odd number of cache lines, so that the rows of a tile are spread over the whole L1 cache.
        tile_row_(width_ + kRowPadding),
        splits_(p_.extent.valid == nullptr ? SplitsOf(PositionsOf(p_.extent))
                                           : MaxSplits(PositionsOf(p_.extent))) {
    Arena arena(base);
    key_weight_ = arena.Take<A>(module_ ? p_.channels * key_row_ : 0);
    max_ = arena.Take<A>(p_.batch * splits_ * key_row_);
    sum_ = arena.Take<A>(p_.batch * splits_ * key_row_);
    sums_ = arena.Take<A>(p_.batch * splits_ * gathered_ * key_row_);
    matrix_ = arena.Take<A>(p_.batch * p_.out_channels * key_row_);
    x_ = arena.Take<A>(threads * gathered_ * tile_row_);
    // Holds keys [width_][key_row_] or queries [dk][tile_row_].
    small_ = arena.Take<A>(threads * std::max(width_ * key_row_, p_.key_channels * tile_row_));
    rescale_ = arena.Take<A>(threads * key_row_);
    out_ = arena.Take<A>(threads * std::min(p_.out_channels, kOutRows) * tile_row_);
    values_ = arena.Take<A>(p_.out_weight != nullptr ? p_.batch * p_.value_channels * key_row_ : 0);
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
    Combine(parallel);
    const int64_t tiles = DivideUp(PositionsOf(p_.extent), width_);
    parallel.run(p_.batch * tiles, 1, [this, tiles](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) Apply(i / tiles, i % tiles * width_, thread);
    });
  }

 private:
  static const A* Weights(const void* data) { return static_cast<const A*>(data); }
  A* SmallOf(int thread) const {
    return small_ + thread * std::max(width_ * key_row_, p_.key_channels * tile_row_);
  }
  A* XOf(int thread) const { return x_ + thread * gathered_ * tile_row_; }
  A* SumsAt(int64_t sample, int64_t split) const {
    return sums_ + (sample * splits_ + split) * gathered_ * key_row_;
  }
  A* PerKey(A* base, int64_t sample, int64_t split) const {
    return base + (sample * splits_ + split) * key_row_;
  }
  const FeatureMap& GatheredMap() const { return module_ ? p_.x : p_.v; }

  // Sets keys[i][j] for `count` positions, computed from the tile of x, or loaded if they are given.
  void LoadKeys(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, const A* x,
                A* keys) const {
    if (!module_) {
      LoadPositions(code_, p_.k, p_.dtype, {sample, box, 0, p_.key_channels, begin, count}, keys, key_row_);
      return;
    }
    code_.product(count, p_.key_channels, p_.channels, {x, 1, tile_row_}, key_weight_, key_row_, keys,
                  key_row_, false);
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
    const int64_t width = WidthOf(std::max(gathered_, p_.key_channels), positions);
    const int64_t length = SplitLength(positions);
    const int64_t last = std::min((split + 1) * length, positions);
    A* x = XOf(thread);
    A* keys = SmallOf(thread);
    A* rescale = rescale_ + thread * key_row_;
    for (int64_t begin = split * length; begin < last; begin += width) {
      const int64_t count = std::min(width, last - begin);
      LoadTile(code_, GatheredMap(), p_.dtype, {sample, box, 0, gathered_, begin, count}, x, tile_row_);
      LoadKeys(sample, box, begin, count, x, keys);
      if (!p_.softmax) {
        code_.add_column_sums(keys, count, p_.key_channels, key_row_, sum);
      } else if (code_.online_softmax(keys, count, p_.key_channels, key_row_, max, sum, rescale) &&
                 begin > split * length) {
        code_.scale_columns(sums, gathered_, p_.key_channels, key_row_, rescale);
      }
      code_.product(gathered_, p_.key_channels, count, {x, tile_row_, 1}, keys, key_row_, sums, key_row_,
                    true);
    }
  }

  // Merges the splits and computes M, in four steps, each of which needs the whole previous step. Small
  // samples are processed by one thread each.
  void Combine(const Parallel& parallel) {
    struct Step {
      void (EaRun::*run)(int64_t sample, int64_t task);
      int64_t tasks;  // per sample
    };
    const bool weights = module_;
    const Step steps[] = {{&EaRun::Denominators, 1},
                          {&EaRun::MergeRows, DivideUp(gathered_, kMergedRows)},
                          {&EaRun::ValueRows, weights ? p_.heads * DivideUp(HeadValues(), kValueRows) : 0},
                          {&EaRun::MatrixRows,
                           weights && p_.out_weight != nullptr ? DivideUp(p_.out_channels, kMergedRows) : 0}};
    if (gathered_ * p_.key_channels <= kMaxSerialElements) {
      parallel.run(p_.batch, 1, [&](int64_t sample, int64_t end, int) {
        for (; sample < end; ++sample) {
          for (const Step& step : steps) {
            for (int64_t task = 0; task < step.tasks; ++task) (this->*step.run)(sample, task);
          }
        }
      });
      return;
    }
    for (const Step& step : steps) {
      if (step.tasks == 0) continue;
      parallel.run(p_.batch * step.tasks, 1, [&](int64_t i, int64_t end, int) {
        for (; i < end; ++i) (this->*step.run)(i / step.tasks, i % step.tasks);
      });
    }
  }

  int64_t HeadKeys() const { return p_.key_channels / p_.heads; }
  int64_t HeadValues() const { return p_.value_channels / p_.heads; }
  A* MatrixOf(int64_t sample) const { return matrix_ + sample * p_.out_channels * key_row_; }
  // With an output projection the values' rows are a separate matrix, otherwise they are the result's.
  A* ValuesOf(int64_t sample) const {
    return p_.out_weight == nullptr ? MatrixOf(sample) : values_ + sample * p_.value_channels * key_row_;
  }

  // Replaces each split's max by the factor of its sums, which includes the division by the softmax's
  // denominator or N. Replaces the first split's sum by the sum of the normalised keys over all positions,
  // the factor of the values' bias.
  void Denominators(int64_t sample, int64_t /*task*/) {
    const ValidBox box(p_.extent, sample);
    ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.out_channels);
    const int64_t splits = SplitsOf(box.positions());
    for (int64_t j = 0; j < p_.key_channels; ++j) {
      A largest = PerKey(max_, sample, 0)[j];
      for (int64_t s = 1; s < splits; ++s) largest = std::max(largest, PerKey(max_, sample, s)[j]);
      A total = 0;
      for (int64_t s = 0; s < splits; ++s) {
        A& own = PerKey(max_, sample, s)[j];
        own = !p_.softmax || own == largest ? A{1} : std::exp(own - largest);
        total += own * PerKey(sum_, sample, s)[j];
      }
      // A sample without valid positions has no output.
      const A divisor = p_.softmax ? total : static_cast<A>(std::max<int64_t>(box.positions(), 1));
      for (int64_t s = 0; s < splits; ++s) PerKey(max_, sample, s)[j] /= divisor;
      PerKey(sum_, sample, 0)[j] = total / divisor;
    }
  }

  // Merges some rows of S into the first split. For the bare operator, also copies the heads' blocks to the
  // matrix.
  void MergeRows(int64_t sample, int64_t task) {
    const int64_t splits = SplitsOf(ValidBox(p_.extent, sample).positions());
    const int64_t first = task * kMergedRows;
    const int64_t rows = std::min(kMergedRows, gathered_ - first);
    A* sums = SumsAt(sample, 0) + first * key_row_;
    code_.scale_columns(sums, rows, p_.key_channels, key_row_, PerKey(max_, sample, 0));
    for (int64_t s = 1; s < splits; ++s) {
      const A* part = SumsAt(sample, s) + first * key_row_;
      const A* scale = PerKey(max_, sample, s);
      for (int64_t c = 0; c < rows; ++c) {
        for (int64_t j = 0; j < p_.key_channels; ++j)
          sums[c * key_row_ + j] += part[c * key_row_ + j] * scale[j];
      }
    }
    for (int64_t c = first; !module_ && c < first + rows; ++c) {
      const int64_t column = c / HeadValues() * HeadKeys();
      std::copy_n(SumsAt(sample, 0) + c * key_row_ + column, HeadKeys(),
                  MatrixOf(sample) + c * key_row_ + column);
    }
  }

  // Computes some rows of one head's values from S, with their weight and bias.
  void ValueRows(int64_t sample, int64_t task) {
    const int64_t blocks = DivideUp(HeadValues(), kValueRows);
    const int64_t head = task / blocks;
    const int64_t first = head * HeadValues() + task % blocks * kValueRows;
    const int64_t rows = std::min(kValueRows, (head + 1) * HeadValues() - first);
    const int64_t column = head * HeadKeys();
    // Rows are written up to their padding, which in the matrix may overlap the next head.
    A* values = ValuesOf(sample) + first * key_row_ + (p_.out_weight == nullptr ? column : 0);
    code_.product(rows, HeadKeys(), p_.channels,
                  {Weights(p_.value_weight) + first * p_.channels, p_.channels, 1},
                  SumsAt(sample, 0) + column, key_row_, values, key_row_, false);
    const A* bias = Weights(p_.value_bias);
    const A* key_sums = PerKey(sum_, sample, 0) + column;
    for (int64_t c = 0; bias != nullptr && c < rows; ++c) {
      for (int64_t j = 0; j < HeadKeys(); ++j) values[c * key_row_ + j] += bias[first + c] * key_sums[j];
    }
  }

  // Computes some rows of M: the output projection of every head's values, in the order of heads, because one
  // head's padding may overwrite the start of the next.
  void MatrixRows(int64_t sample, int64_t task) {
    const int64_t first = task * kMergedRows;
    const int64_t rows = std::min(kMergedRows, p_.out_channels - first);
    for (int64_t head = 0; head < p_.heads; ++head) {
      const int64_t value = head * HeadValues();
      code_.product(rows, HeadKeys(), HeadValues(),
                    {Weights(p_.out_weight) + first * p_.value_channels + value, p_.value_channels, 1},
                    ValuesOf(sample) + value * key_row_, key_row_,
                    MatrixOf(sample) + first * key_row_ + head * HeadKeys(), key_row_, false);
    }
  }

  void Apply(int64_t sample, int64_t begin, int thread) {
    const ValidBox box(p_.extent, sample);
    const int64_t count = std::min(width_, box.positions() - begin);
    if (count <= 0) return;
    A* x = XOf(thread);
    A* queries = SmallOf(thread);
    if (module_) {
      LoadTile(code_, p_.x, p_.dtype, {sample, box, 0, p_.channels, begin, count}, x, tile_row_);
      code_.product(p_.key_channels, count, p_.channels, {Weights(p_.query_weight), p_.channels, 1}, x,
                    tile_row_, queries, tile_row_, false);
      if (p_.query_bias != nullptr) {
        code_.affine(queries, p_.key_channels, count, tile_row_, nullptr, Weights(p_.query_bias), nullptr);
      }
    } else {
      LoadTile(code_, p_.q, p_.dtype, {sample, box, 0, p_.key_channels, begin, count}, queries, tile_row_);
    }
    for (int64_t head = 0; p_.softmax && head < p_.heads; ++head) {
      code_.softmax(queries + head * HeadKeys() * tile_row_, HeadKeys(), count, tile_row_);
    }
    // Without an output projection, which mixes heads, a head's queries use only its own rows.
    const bool mixed = p_.out_weight != nullptr;
    const int64_t groups = mixed ? 1 : p_.heads;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t keys = p_.key_channels / groups;
      const int64_t rows = p_.out_channels / groups;
      const A* matrix = matrix_ + sample * p_.out_channels * key_row_ + group * (rows * key_row_ + keys);
      WriteRows({sample, box, group * rows, rows, begin, count}, matrix, queries + group * keys * tile_row_,
                keys, x, thread);
    }
  }

  // Writes a block of the result: matrix (block.channels x keys) times queries, then bias and residual.
  void WriteRows(const MapBlock& block, const A* matrix, const A* queries, int64_t keys, const A* x,
                 int thread) const {
    A* out = out_ + thread * std::min(p_.out_channels, kOutRows) * tile_row_;
    const A* bias = Weights(p_.out_bias);
    for (int64_t at = 0; at < block.channels; at += kOutRows) {
      MapBlock rows = block;
      rows.channel += at;
      rows.channels = std::min(kOutRows, block.channels - at);
      code_.product(rows.channels, rows.count, keys, {matrix + at * key_row_, key_row_, 1}, queries,
                    tile_row_, out, tile_row_, false);
      if (bias != nullptr || p_.residual) {
        code_.affine(out, rows.channels, rows.count, tile_row_, nullptr,
                     bias == nullptr ? nullptr : bias + rows.channel,
                     p_.residual ? x + rows.channel * tile_row_ : nullptr);
      }
      StoreTile(code_, out, p_.out, p_.dtype, rows, tile_row_);
    }
  }

  const EfficientAttentionProblem& p_;
  const TileCode<A>& code_;
  const bool module_;
  const int64_t gathered_;  // channels that the keys' softmax sums: of x, or of v
  const int64_t key_row_;
  const int64_t width_;
  const int64_t tile_row_;
  const int64_t splits_;
  size_t bytes_;
  A* key_weight_;                    // [C][key_row_], transposed
  A *max_, *sum_;                    // [B][splits][key_row_]
  A* sums_;                          // [B][splits][gathered_][key_row_]
  A* matrix_;                        // [B][out_channels][key_row_]
  A* values_;                        // [B][dv][key_row_], if there is an output projection
  A *x_, *small_, *rescale_, *out_;  // per thread
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
