// Four steps for each sample, through maps [channels][positions] in the workspace:
//   gather   per split of the positions and group of heads: queries and values, projected or as given, and
//            the running softmax of the keys with the context S^T = V P (positions by tiles of 64)
//   merge    per head: adds the splits' contexts in order, divided by the softmax's sums
//   axis     per head and kLines columns: attention along the columns and the middle batch norm; then the
//            same along rows. Maps are rearranged into blocks [position along the line][channel][line] for
//            it, and results are rearranged back
//   finish   per tile: adds Q S, applies the last batch norm, and stores the result
#include "kernels/gsa/gsa_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/arena.h"
#include "kernels/gsa/gsa_lines.h"
#include "kernels/gsa/gsa_turn.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kMaxSplits = 32;
constexpr int64_t kTasksWanted = 8;  // in a step over tiles: enough for a few threads; a function of shapes
                                     // only
// Maximum workspace of a sample for which samples run in parallel, one per thread.
constexpr size_t kMaxParallelSampleBytes = size_t{16} << 20;

int64_t TilesOf(int64_t positions) { return DivideUp(positions, kTile); }
int64_t TilesPerSplit(int64_t positions) {
  return std::max<int64_t>(DivideUp(TilesOf(positions), kMaxSplits), 1);
}
int64_t SplitsOf(int64_t positions) { return DivideUp(TilesOf(positions), TilesPerSplit(positions)); }

// Returns a Parallel that runs all tasks on the calling thread.
Parallel Alone() {
  return {.threads = 1, .run = [](int64_t tasks, int64_t, const Parallel::Task& task) { task(0, tasks, 0); }};
}

// The heads of one task.
struct Heads {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

template <typename A>
class GsaRun {
 public:
  GsaRun(const GsaProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        code_(TileCodeFor<A>(isa, p_.dtype)),
        lines_(GsaLineCodeFor<A>(isa)),
        axes_(AxesOf(problem)),
        key_channels_(p_.key_channels / p_.heads),
        value_channels_(p_.value_channels / p_.heads),
        positions_(PositionsOf(p_.extent)),
        height_(p_.extent.size[1]),
        width_(p_.extent.size[2]),
        // Room to store whole tiles and to read kLines positions from any position. The odd number of cache
        // lines keeps channels of a power of two positions from using the same cache sets.
        row_(RoundUp(positions_, kTile) + kRowPadding),
        context_row_(RoundUp(key_channels_, kRowPadding)),
        group_row_(RoundUp(p_.key_channels, kRowPadding)),
        splits_(std::min(kMaxSplits, TilesOf(positions_))) {
    Arena sample(nullptr);
    LayOutSample(sample);
    const bool side_by_side = threads > 1 && p_.batch >= threads && sample.bytes() <= kMaxParallelSampleBytes;
    samples_at_once_ = side_by_side ? threads : 1;
    sample_bytes_ = static_cast<int64_t>(sample.bytes());
    Arena scratch(nullptr);
    LayOutScratch(scratch);
    scratch_bytes_ = static_cast<int64_t>(scratch.bytes());
    Arena all(base);
    samples_ = all.Take<std::byte>(samples_at_once_ * sample_bytes_);
    scratch_ = all.Take<std::byte>(threads * scratch_bytes_);
    bytes_ = all.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) const {
    int64_t done = 0;
    if (samples_at_once_ > 1) {
      // Every thread gets the same number of samples; all threads together process the remaining ones.
      done = p_.batch / samples_at_once_ * samples_at_once_;
      parallel.run(done, 1, [this](int64_t i, int64_t end, int thread) {
        for (; i < end; ++i) RunSample(i, Alone(), thread);
      });
    }
    for (; done < p_.batch; ++done) RunSample(done, parallel, 0);
  }

 private:
  // One sample's maps and the results of its splits.
  struct Sample {
    A* q = nullptr;     // [Ck][row_]
    A* k = nullptr;     // [Ck][row_], only for axial content
    A* v[2] = {};       // [C][row_]: the values, and the first axis's result; then alternating
    A* max = nullptr;   // [splits][heads, by groups of whole padded rows]
    A* sum = nullptr;   // like max
    A* sums = nullptr;  // [splits][C][context_row_]: S^T of each head
  };
  // Scratch memory of one thread.
  struct Scratch {
    A* x = nullptr;        // [channels][kTile]
    A* keys = nullptr;     // [Ck][kTile]
    A* turned = nullptr;   // [kTile][group_row_]
    A* rescale = nullptr;  // [group_row_]
    A* query = nullptr;    // blocks of lines: [longest][Ck / heads][kLines]
    A* key = nullptr;      // like query
    A* value = nullptr;    // [longest][C / heads][kLines]
    A* out = nullptr;      // like value
    A* scores = nullptr;   // [longest][kLines]
    A* rows = nullptr;     // [kLines][longest]
  };

  Sample LayOutSample(Arena& arena) const {
    Sample s;
    // Reading a block of lines may continue for kLines rows after the last.
    const int64_t beyond = kLines * (width_ + kLines);
    s.q = arena.Take<A>(p_.key_channels * row_ + beyond);
    s.k = arena.Take<A>(p_.content == GsaContent::kAxial ? p_.key_channels * row_ + beyond : 0);
    for (A*& v : s.v) v = arena.Take<A>(p_.value_channels * row_ + beyond);
    if (p_.content != GsaContent::kGlobal) return s;
    s.max = arena.Take<A>(splits_ * StatisticsRow());
    s.sum = arena.Take<A>(splits_ * StatisticsRow());
    s.sums = arena.Take<A>(splits_ * p_.value_channels * context_row_);
    return s;
  }

  Scratch LayOutScratch(Arena& arena) const {
    Scratch s;
    const int64_t longest = RoundUp(std::max(height_, width_), kRowPadding);
    const bool global = p_.content == GsaContent::kGlobal;
    const bool axial = p_.content == GsaContent::kAxial;
    s.x = arena.Take<A>(p_.channels * kTile);
    s.keys = arena.Take<A>(global && IsModule(p_) ? p_.key_channels * kTile : 0);
    // A head's columns may be read up to a whole padded row further.
    s.turned = arena.Take<A>(global ? kTile * group_row_ + kRowPadding : 0);
    s.rescale = arena.Take<A>(global ? group_row_ + kRowPadding : 0);
    if (axes_ == 0) return s;
    s.query = arena.Take<A>(longest * key_channels_ * kLines);
    s.key = arena.Take<A>(axial ? longest * key_channels_ * kLines : 0);
    s.value = arena.Take<A>(longest * value_channels_ * kLines);
    s.out = arena.Take<A>(longest * value_channels_ * kLines);
    s.scores = arena.Take<A>(longest * kLines);
    s.rows = arena.Take<A>(kLines * longest);
    return s;
  }

  Scratch ScratchOf(int thread) const {
    Arena arena(scratch_ + thread * scratch_bytes_);
    return LayOutScratch(arena);
  }

  static const A* Weights(const void* data) { return static_cast<const A*>(data); }
  int64_t StatisticsRow() const { return p_.heads * context_row_; }
  // Returns the offset of the maxima and sums of the group that starts with `first_head`. Groups never share
  // a padded row.
  int64_t StatisticsAt(int64_t split, int64_t first_head) const {
    return split * StatisticsRow() + first_head * context_row_;
  }
  A* SumsAt(const Sample& s, int64_t split, int64_t head) const {
    return s.sums + (split * p_.value_channels + head * value_channels_) * context_row_;
  }

  // If there are few tiles, heads are split into groups as well.
  int64_t GroupsOf(int64_t tiles) const {
    return std::min(p_.heads, DivideUp(kTasksWanted, std::max<int64_t>(tiles, 1)));
  }
  Heads HeadsOf(int64_t group, int64_t groups) const {
    return {group * p_.heads / groups, (group + 1) * p_.heads / groups};
  }

  // `slot` is the first of the workspace's samples and threads that this call may use.
  void RunSample(int64_t sample, const Parallel& parallel, int slot) const {
    const ValidBox box(p_.extent, sample);
    Arena arena(samples_ + slot * sample_bytes_);
    const Sample s = LayOutSample(arena);
    const auto each = [&](int64_t tasks, const auto& task) {
      parallel.run(tasks, 1, [&](int64_t i, int64_t end, int thread) {
        const Scratch scratch = ScratchOf(slot + thread);
        for (; i < end; ++i) task(i, scratch);
      });
    };
    ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.value_channels);
    const int64_t positions = box.positions();
    if (positions == 0) return;
    const int64_t splits = SplitsOf(positions);
    const int64_t groups = GroupsOf(splits);
    each(splits * groups, [&](int64_t i, const Scratch& scratch) {
      Gather(sample, box, s, i / groups, HeadsOf(i % groups, groups), scratch);
    });
    if (p_.content == GsaContent::kGlobal) {
      each(groups, [&](int64_t i, const Scratch&) { MergeSplits(s, HeadsOf(i, groups), splits); });
    }
    int values = 0;
    for (const int axis : {0, 1}) {
      if (p_.embedding[axis] == nullptr) continue;
      const int64_t blocks = DivideUp(box.size(2 - axis), kLines);
      each(p_.heads * blocks, [&](int64_t i, const Scratch& scratch) {
        AttendAlong(axis, box, s, s.v[values], s.v[1 - values], i / blocks, i % blocks * kLines, scratch);
      });
      values = 1 - values;
    }
    const int64_t tiles = TilesOf(positions);
    const int64_t tile_groups = GroupsOf(tiles);
    each(tiles * tile_groups, [&](int64_t i, const Scratch&) {
      Finish(sample, box, s, axes_ == 0 ? s.v[1] : s.v[values], i / tile_groups * kTile,
             HeadsOf(i % tile_groups, tile_groups));
    });
  }

  // Computes a block of q, k or v, projected from the tile of x or loaded as given.
  void Fill(const FeatureMap& map, const void* weight, const void* bias, const MapBlock& block, const A* x,
            A* to, int64_t row) const {
    if (!IsModule(p_)) {
      LoadTile(code_, map, p_.dtype, block, to, row);
      return;
    }
    code_.product(block.channels, block.count, p_.channels,
                  {Weights(weight) + block.channel * p_.channels, p_.channels, 1}, x, kTile, to, row, false);
    if (bias == nullptr) return;
    code_.affine(to, block.channels, block.count, row, nullptr, Weights(bias) + block.channel, nullptr);
  }

  void Gather(int64_t sample, const ValidBox& box, const Sample& s, int64_t split, const Heads& heads,
              const Scratch& t) const {
    const int64_t length = TilesPerSplit(box.positions()) * kTile;
    const int64_t first = split * length;
    const int64_t last = std::min(first + length, box.positions());
    const int64_t key = heads.begin * key_channels_;
    const int64_t keys = heads.count() * key_channels_;
    const int64_t value = heads.begin * value_channels_;
    for (int64_t begin = first; begin < last; begin += kTile) {
      const int64_t count = std::min(kTile, last - begin);
      const MapBlock key_block{sample, box, key, keys, begin, count};
      const MapBlock value_block{sample, box, value, heads.count() * value_channels_, begin, count};
      if (IsModule(p_)) LoadTile(code_, p_.x, p_.dtype, {sample, box, 0, p_.channels, begin, count}, t.x);
      Fill(p_.q, p_.query_weight, p_.query_bias, key_block, t.x, s.q + key * row_ + begin, row_);
      Fill(p_.v, p_.value_weight, p_.value_bias, value_block, t.x, s.v[0] + value * row_ + begin, row_);
      if (p_.content == GsaContent::kAxial) {
        Fill(p_.k, p_.key_weight, nullptr, key_block, t.x, s.k + key * row_ + begin, row_);
      } else if (p_.content == GsaContent::kGlobal) {
        if (IsModule(p_)) {
          Fill(p_.k, p_.key_weight, nullptr, key_block, t.x, t.keys, kTile);
          code_.transpose(t.keys, keys, count, kTile, t.turned, group_row_);
        } else {
          LoadPositions(code_, p_.k, p_.dtype, key_block, t.turned, group_row_);
        }
        AddContext(s, split, heads, begin, count, begin == first, t);
      }
    }
  }

  // Adds the values of the keys' positions to the context, weighted by the keys in t.turned.
  void AddContext(const Sample& s, int64_t split, const Heads& heads, int64_t begin, int64_t count,
                  bool first, const Scratch& t) const {
    const int64_t keys = heads.count() * key_channels_;
    A* max = s.max + StatisticsAt(split, heads.begin);
    A* sum = s.sum + StatisticsAt(split, heads.begin);
    if (first) {
      std::fill_n(max, RoundUp(keys, kRowPadding), -std::numeric_limits<A>::infinity());
      std::fill_n(sum, RoundUp(keys, kRowPadding), A{0});
    }
    const bool rescale =
        code_.online_softmax(t.turned, count, keys, group_row_, max, sum, t.rescale) && !first;
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      const int64_t column = (head - heads.begin) * key_channels_;
      A* sums = SumsAt(s, split, head);
      if (rescale)
        code_.scale_columns(sums, value_channels_, key_channels_, context_row_, t.rescale + column);
      code_.product(value_channels_, key_channels_, count,
                    {s.v[0] + head * value_channels_ * row_ + begin, row_, 1}, t.turned + column, group_row_,
                    sums, context_row_, !first);
    }
  }

  // Merges all splits into the first.
  void MergeSplits(const Sample& s, const Heads& heads, int64_t splits) const {
    for (int64_t column = 0; column < heads.count() * key_channels_; ++column) {
      const auto at = [&](A* base, int64_t split) -> A& {
        return base[StatisticsAt(split, heads.begin) + column];
      };
      A largest = at(s.max, 0);
      for (int64_t i = 1; i < splits; ++i) largest = std::max(largest, at(s.max, i));
      A total = 0;
      for (int64_t i = 0; i < splits; ++i) {
        // Replaces the split's maximum by the factor of its sums.
        at(s.max, i) = std::exp(at(s.max, i) - largest);
        total += at(s.max, i) * at(s.sum, i);
      }
      for (int64_t i = 0; i < splits; ++i) at(s.max, i) /= total;
    }
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      const auto scale_of = [&](int64_t split) {
        return s.max + StatisticsAt(split, heads.begin) + (head - heads.begin) * key_channels_;
      };
      A* sums = SumsAt(s, 0, head);
      code_.scale_columns(sums, value_channels_, key_channels_, context_row_, scale_of(0));
      for (int64_t i = 1; i < splits; ++i) {
        const A* part = SumsAt(s, i, head);
        for (int64_t v = 0; v < value_channels_; ++v) {
          for (int64_t c = 0; c < key_channels_; ++c) {
            sums[v * context_row_ + c] += part[v * context_row_ + c] * scale_of(i)[c];
          }
        }
      }
    }
  }

  void AttendAlong(int axis, const ValidBox& box, const Sample& s, const A* values, A* result, int64_t head,
                   int64_t line, const Scratch& t) const {
    const GsaGrid grid{box.size(1), box.size(2), row_};
    const int64_t length = box.size(1 + axis);
    const int64_t key = head * key_channels_;
    const int64_t value = head * value_channels_;
    const bool content = p_.content == GsaContent::kAxial;
    LoadLines(code_, grid, axis, s.q + key * row_, key_channels_, line, t.query);
    if (content) LoadLines(code_, grid, axis, s.k + key * row_, key_channels_, line, t.key);
    LoadLines(code_, grid, axis, values + value * row_, value_channels_, line, t.value);
    // The embedding's row of a position itself; the row for position j seen from position i is j - i rows
    // further.
    const A* own = Weights(p_.embedding[axis]) + (p_.reach[axis] - 1) * key_channels_;
    for (int64_t i = 0; i < length; ++i) {
      lines_.scores(length, key_channels_, t.query + i * key_channels_ * kLines, own - i * key_channels_,
                    content ? t.key : nullptr, t.scores);
      if (content) code_.softmax(t.scores, length, kLines, kLines);
      lines_.weigh(length, value_channels_, t.scores, t.value, t.out + i * value_channels_ * kLines);
    }
    if (axis == 1) {
      StoreRows(code_, grid, t.out, value_channels_, line, t.rows, result + value * row_);
    } else {
      // Set only if rows follow.
      const A* scale = p_.middle_scale == nullptr ? nullptr : Weights(p_.middle_scale) + value;
      const A* shift = p_.middle_shift == nullptr ? nullptr : Weights(p_.middle_shift) + value;
      StoreColumns(grid, t.out, value_channels_, scale, shift, line, result + value * row_);
    }
  }

  void Finish(int64_t sample, const ValidBox& box, const Sample& s, A* y, int64_t begin,
              const Heads& heads) const {
    const int64_t count = std::min(kTile, box.positions() - begin);
    const int64_t channel = heads.begin * value_channels_;
    const int64_t channels = heads.count() * value_channels_;
    if (p_.content == GsaContent::kGlobal) {
      for (int64_t head = heads.begin; head < heads.end; ++head) {
        code_.product(value_channels_, count, key_channels_, {SumsAt(s, 0, head), context_row_, 1},
                      s.q + head * key_channels_ * row_ + begin, row_,
                      y + head * value_channels_ * row_ + begin, row_, axes_ > 0);
      }
    }
    A* tile = y + channel * row_ + begin;
    if (p_.scale != nullptr) {
      code_.affine(tile, channels, count, row_, Weights(p_.scale) + channel, Weights(p_.shift) + channel,
                   nullptr);
    }
    StoreTile(code_, tile, p_.out, p_.dtype, {sample, box, channel, channels, begin, count}, row_);
  }

  const GsaProblem& p_;
  const TileCode<A>& code_;
  const GsaLineCode<A>& lines_;
  const int axes_;
  const int64_t key_channels_, value_channels_;  // per head
  const int64_t positions_, height_, width_;
  const int64_t row_, context_row_, group_row_;
  const int64_t splits_;
  int samples_at_once_ = 1;
  int64_t sample_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
  std::byte* samples_ = nullptr;
  std::byte* scratch_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace

template <typename A>
size_t GsaCpuWorkspaceBytes(const GsaProblem& problem, int threads) {
  return GsaRun<A>(problem, BestCpuIsa(), threads, nullptr).bytes();
}

template <typename A>
void RunGsaCpu(const GsaProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  GsaRun<A>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template size_t GsaCpuWorkspaceBytes<float>(const GsaProblem&, int);
template size_t GsaCpuWorkspaceBytes<double>(const GsaProblem&, int);
template void RunGsaCpu<float>(const GsaProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunGsaCpu<double>(const GsaProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
