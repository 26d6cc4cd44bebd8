#include "kernels/kao/kao_cpu.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/arena.h"
#include "kernels/common/dtype_dispatch.h"
#include "kernels/common/valid_box.h"
#include "kernels/kao/kao_blocks.h"
#include "kernels/tile/attend.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

constexpr int64_t kChannelChunk = 64;         // channels per task of averaging or spreading
constexpr int64_t kMatrixRows = 48;           // rows of a product per task
constexpr int64_t kMaxKeys = 512;             // maximum number of keys whose logits exist at once
constexpr int64_t kSpreadElements = 1 << 14;  // elements per spreading task if channels are adjacent

template <typename T>
const KaoBlockCode<T>& BlockCodeFor([[maybe_unused]] CpuIsa isa) {
  if constexpr (std::is_same_v<T, double>) {
    return KaoDoubleCode();
  } else {
    const KaoCode* code = &KaoPortableCode();
#if defined(__x86_64__)
    if (isa == CpuIsa::kAvx2) code = &KaoAvx2Code();
    if (isa == CpuIsa::kAvx512) code = &KaoAvx512Code();
#endif
    if constexpr (std::is_same_v<T, float>) {
      return code->f32;
    } else {
      return code->bf16;
    }
  }
}

// Averages, keys, values or queries: for every sample a matrix with a row per channel and a column per
// average.
template <typename A>
struct Vectors {
  A* data = nullptr;
  int64_t channels = 0;
  int64_t row = 0;
  A* At(int64_t sample, int64_t channel = 0) const { return data + (sample * channels + channel) * row; }
  int64_t Blocks() const { return DivideUp(channels, kMatrixRows); }
};

// An array per thread.
template <typename Element>
struct PerThread {
  PerThread(Arena* arena, int threads, int64_t size_of_each)
      : data(arena->Take<Element>(threads * size_of_each)), size(size_of_each) {}
  Element* At(int thread) const { return data + thread * size; }
  Element* data;
  int64_t size;
};

// The layout of the workspace. Parts that are not needed take no memory.
template <typename A>
struct KaoLayout {
  KaoLayout(const KaoProblem& p, const TileCode<A>& code, int threads, std::byte* base)
      : row(RoundUp(KaoRows(p) + KaoColumns(p), kRowPadding)),
        // Same rule as at::empty: with one channel or one column, positions count as adjacent.
        channels_adjacent(p.out.channel_stride == 1 && p.out.spatial_stride[2] != 1),
        attended_row(channels_adjacent ? RoundUp(p.value_channels, kRowPadding) : row),
        arena(base),
        map_tile(&arena, threads, (p.query_map_channels + 1) * kTile),
        query_tile(&arena, threads, p.key_channels * kTile),
        out_tile(&arena, threads, p.value_channels * kTile),
        transposed(&arena, threads, row * kChannelChunk),
        attention(&arena, threads, ScratchOfAttention(code)) {
    const auto take = [&](int64_t channels) {
      return Vectors<A>{arena.Take<A>(p.batch * channels * row), channels, row};
    };
    const auto average = [&](const FeatureMap& map, int64_t channels) {
      for (int i = 0; i < source_count; ++i) {
        if (SameMap(sources[i].map, map) && sources[i].averages.channels == channels)
          return sources[i].averages;
      }
      sources[source_count] = {map, take(channels)};
      return sources[source_count++].averages;
    };
    key_averages = average(p.k, p.query_map_channels);
    value_averages = average(p.v, p.value_map_channels);
    const bool own_keys = p.key_weight != nullptr || p.coefficient_scale != nullptr;
    keys = own_keys ? take(p.key_channels) : key_averages;
    values = p.value_weight != nullptr ? take(p.value_channels) : value_averages;
    if (p.kind == KaoKind::kAverageQueries) {
      query_averages = average(p.q, p.query_map_channels);
      const bool own_queries = p.query_weight != nullptr || p.query_bias != nullptr;
      queries = own_queries ? take(p.key_channels) : query_averages;
      attended_size =
          channels_adjacent ? (KaoRows(p) + KaoColumns(p)) * attended_row : p.value_channels * row;
      attended = arena.Take<A>(p.batch * attended_size);
    } else if (p.query_weight != nullptr) {
      folded = take(p.heads * (p.query_map_channels + 1));
    }
    shift = p.shift != nullptr || p.value_bias != nullptr ? arena.Take<A>(p.value_channels) : nullptr;
    has_shift = p.shift != nullptr || p.value_bias != nullptr;
  }

  int64_t ScratchOfAttention(const TileCode<A>& code) const {
    Arena scratch(nullptr);
    TileAttention<A>(code, std::min(row, kMaxKeys), &scratch);
    return static_cast<int64_t>(scratch.bytes());
  }

  struct Source {
    FeatureMap map;
    Vectors<A> averages;
  };

  const int64_t row;  // row length of matrices with a column per average
  const bool channels_adjacent;
  const int64_t attended_row;
  Arena arena;
  PerThread<A> map_tile;  // one channel more than the map: see Queries
  PerThread<A> query_tile, out_tile;
  PerThread<A> transposed;
  PerThread<std::byte> attention;
  Source sources[3];
  int source_count = 0;
  Vectors<A> key_averages, value_averages, query_averages, keys, values, queries;
  Vectors<A> folded;  // per head, keys over the map's channels and, as the last one, their biases
  A* attended =
      nullptr;  // of each sample [value_channels][row], or [averages][attended_row] if channels_adjacent
  int64_t attended_size = 0;
  bool has_shift = false;
  A* shift = nullptr;  // [value_channels]: sum of all terms added to a channel
};

// The steps, each of which consists of independent tasks per sample.
template <typename T>
class KaoRun {
 public:
  using A = Accumulate<T>;

  KaoRun(const KaoProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        code_(TileCodeFor<A>(isa, p_.dtype)),
        blocks_(BlockCodeFor<T>(isa)),
        at_(problem, code_, threads, base) {}

  size_t bytes() const { return at_.arena.bytes(); }

  void Run(const Parallel& parallel) {
    PlaceShift();
    const Stage stages[] = {
        {&KaoRun::Average, AverageTasks()},
        {&KaoRun::Transform, TransformTasks()},
        {&KaoRun::Fold, FoldTasks()},
        {&KaoRun::Attend, DivideUp(QueriesOf(PositionsOf(p_.extent), KaoRows(p_) + KaoColumns(p_)), kTile)},
        {&KaoRun::Spread, SpreadTasks()}};
    // Up to kMaxWholeElements a sample is not split, and a thread's range has at least kGrainElements,
    // because more tasks would cost more than they gain. Up to kMaxCachedElements a sample stays in the L2
    // cache: if there are enough samples, a thread runs all steps of a sample one after the other.
    constexpr int64_t kMaxWholeElements = 32 * 1024;
    constexpr int64_t kGrainElements = 16 * 1024;
    constexpr int64_t kMaxCachedElements = 128 * 1024;
    const int64_t elements = p_.value_channels * PositionsOf(p_.extent);
    if (elements <= kMaxWholeElements || (elements <= kMaxCachedElements && p_.batch >= parallel.threads)) {
      parallel.run(p_.batch, DivideUp(kGrainElements, elements),
                   [&](int64_t sample, int64_t end, int thread) {
                     for (; sample < end; ++sample) {
                       for (const Stage& stage : stages) {
                         for (int64_t task = 0; task < stage.tasks; ++task)
                           (this->*stage.step)(sample, task, thread);
                       }
                     }
                   });
      return;
    }
    for (const Stage& stage : stages) {
      if (stage.tasks == 0) continue;
      parallel.run(p_.batch * stage.tasks, 1, [&](int64_t i, int64_t end, int thread) {
        for (; i < end; ++i) (this->*stage.step)(i / stage.tasks, i % stage.tasks, thread);
      });
    }
  }

 private:
  struct Stage {
    void (KaoRun::*step)(int64_t sample, int64_t task, int thread);
    int64_t tasks;  // per sample
  };

  bool map_queries() const { return p_.kind == KaoKind::kMapQueries; }
  int64_t QueriesOf(int64_t positions, int64_t averages) const {
    return map_queries() ? positions : averages;
  }
  static int64_t KeysOf(const ValidBox& box) { return box.size(1) + box.size(2); }
  bool Folds(const ValidBox& box) const { return map_queries() && FoldsQueries(p_, KeysOf(box)); }
  int64_t head_key_channels() const { return p_.key_channels / p_.heads; }
  int64_t head_value_channels() const { return p_.value_channels / p_.heads; }
  static const A* Weights(const void* weights) { return static_cast<const A*>(weights); }

  // Computes all terms added to a channel except the residual. Coefficients sum to one, so the values' bias
  // is added once; an outer sum adds two halves.
  void PlaceShift() {
    if (!at_.has_shift) return;
    for (int64_t c = 0; c < p_.value_channels; ++c) {
      const A shift = p_.shift == nullptr ? A{0} : Weights(p_.shift)[c];
      const A bias = p_.value_bias == nullptr ? A{0} : Weights(p_.value_bias)[c];
      const A scale = p_.scale == nullptr ? A{1} : Weights(p_.scale)[c];
      at_.shift[c] = scale * bias + (map_queries() ? shift : shift / A{2});
    }
  }

  template <typename Element, typename Map>
  static KaoBlock<Element> BlockOf(const Map& map, int64_t sample, const ValidBox& box, int64_t channel,
                                   int64_t channels) {
    auto* data = static_cast<Element*>(map.data) + sample * map.batch_stride + channel * map.channel_stride;
    return {data,
            channels,
            box.size(1),
            box.size(2),
            map.channel_stride,
            map.spatial_stride[1],
            map.spatial_stride[2],
            map.channel_stride == 1 && map.spatial_stride[2] != 1};
  }

  int64_t AverageTasks() const {
    int64_t tasks = 0;
    for (int i = 0; i < at_.source_count; ++i)
      tasks += DivideUp(at_.sources[i].averages.channels, kChannelChunk);
    return tasks;
  }

  // Computes row and column means of some channels of one map.
  void Average(int64_t sample, int64_t task, int thread) {
    const ValidBox box(p_.extent, sample);
    if (box.positions() == 0) return;
    int source = 0;
    for (; task >= DivideUp(at_.sources[source].averages.channels, kChannelChunk); ++source) {
      task -= DivideUp(at_.sources[source].averages.channels, kChannelChunk);
    }
    const Vectors<A>& to = at_.sources[source].averages;
    const int64_t channel = task * kChannelChunk;
    const auto block = BlockOf<const T>(at_.sources[source].map, sample, box, channel,
                                        std::min(kChannelChunk, to.channels - channel));
    if (!block.channels_adjacent) {
      blocks_.average(block, to.At(sample, channel), to.row);
      return;
    }
    A* transposed = at_.transposed.At(thread);
    blocks_.average(block, transposed, kChannelChunk);
    code_.transpose(transposed, KeysOf(box), block.channels, kChannelChunk, to.At(sample, channel), to.row);
  }

  bool OwnKeys() const { return at_.keys.data != at_.key_averages.data; }
  bool OwnValues() const { return at_.values.data != at_.value_averages.data; }
  bool OwnQueries() const { return at_.queries.data != at_.query_averages.data; }

  int64_t TransformTasks() const {
    return (OwnKeys() ? at_.keys.Blocks() : 0) + (OwnValues() ? at_.values.Blocks() : 0) +
           (OwnQueries() ? at_.queries.Blocks() : 0);
  }

  // Computes a block of rows of to = weight from + bias; a null weight is the identity.
  void TransformRows(int64_t sample, int64_t block, const Vectors<A>& from, const A* weight, const A* bias,
                     const Vectors<A>& to) {
    const int64_t keys = KeysOf(ValidBox(p_.extent, sample));
    const int64_t begin = block * kMatrixRows;
    const int64_t rows = std::min(kMatrixRows, to.channels - begin);
    if (weight == nullptr) {
      for (int64_t c = begin; c < begin + rows; ++c) std::copy_n(from.At(sample, c), keys, to.At(sample, c));
    } else {
      code_.product(rows, keys, from.channels, {weight + begin * from.channels, from.channels, 1},
                    from.At(sample), from.row, to.At(sample, begin), to.row, false);
    }
    if (bias == nullptr) return;
    code_.affine(to.At(sample, begin), rows, keys, to.row, nullptr, bias + begin, nullptr);
  }

  void Transform(int64_t sample, int64_t task, int /*thread*/) {
    if (ValidBox(p_.extent, sample).positions() == 0) return;
    if (OwnKeys()) {
      if (task < at_.keys.Blocks()) {
        TransformRows(sample, task, at_.key_averages, Weights(p_.key_weight), nullptr, at_.keys);
        ScaleKeys(sample, task);
        return;
      }
      task -= at_.keys.Blocks();
    }
    if (OwnValues()) {
      if (task < at_.values.Blocks()) {
        TransformRows(sample, task, at_.value_averages, Weights(p_.value_weight), nullptr, at_.values);
        return;
      }
      task -= at_.values.Blocks();
    }
    TransformRows(sample, task, at_.query_averages, Weights(p_.query_weight), Weights(p_.query_bias),
                  at_.queries);
  }

  // The coefficients' scale is applied to the keys, by head.
  void ScaleKeys(int64_t sample, int64_t block) {
    if (p_.coefficient_scale == nullptr) return;
    const int64_t keys = KeysOf(ValidBox(p_.extent, sample));
    const int64_t end = std::min((block + 1) * kMatrixRows, at_.keys.channels);
    for (int64_t c = block * kMatrixRows; c < end; ++c) {
      code_.affine(at_.keys.At(sample, c), 1, keys, at_.row,
                   Weights(p_.coefficient_scale) + c / head_key_channels(), nullptr, nullptr);
    }
  }

  A* FoldedAt(int64_t sample, int64_t head) const {
    return at_.folded.At(sample, head * (p_.query_map_channels + 1));
  }

  int64_t FoldTasks() const {
    if (!map_queries() || p_.query_weight == nullptr) return 0;
    return p_.heads * DivideUp(p_.query_map_channels, kMatrixRows);
  }

  // Computes a head's keys over the map's channels, Wq^T K, and their biases bq^T K.
  void Fold(int64_t sample, int64_t task, int /*thread*/) {
    const ValidBox box(p_.extent, sample);
    if (box.positions() == 0 || !Folds(box)) return;
    const int64_t channels = p_.query_map_channels;
    const int64_t blocks = DivideUp(channels, kMatrixRows);
    const int64_t head = task / blocks;
    const int64_t begin = task % blocks * kMatrixRows;
    const int64_t first = head * head_key_channels();
    const A* keys = at_.keys.At(sample, first);
    A* folded = FoldedAt(sample, head);
    code_.product(std::min(kMatrixRows, channels - begin), KeysOf(box), head_key_channels(),
                  {Weights(p_.query_weight) + first * channels + begin, 1, channels}, keys, at_.row,
                  folded + begin * at_.row, at_.row, false);
    if (begin != 0 || p_.query_bias == nullptr) return;
    code_.product(1, KeysOf(box), head_key_channels(),
                  {Weights(p_.query_bias) + first, head_key_channels(), 1}, keys, at_.row,
                  folded + channels * at_.row, at_.row, false);
  }

  void Attend(int64_t sample, int64_t task, int thread) {
    const ValidBox box(p_.extent, sample);
    if (map_queries() && task == 0) {
      ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.value_channels);
    }
    const int64_t begin = task * kTile;
    const int64_t count = std::min(QueriesOf(box.positions(), KeysOf(box)) - begin, kTile);
    if (box.positions() == 0 || count <= 0) return;
    map_queries() ? AttendMap(sample, box, begin, count, thread)
                  : AttendAverages(sample, box, begin, count, thread);
  }

  void AttendMap(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, int thread) {
    A* tile = at_.map_tile.At(thread);
    A* out = at_.out_tile.At(thread);
    LoadTile(code_, p_.q, p_.dtype, {sample, box, 0, p_.query_map_channels, begin, count}, tile);
    AttendHeads(sample, box, Queries(box, count, thread), count, out, thread);
    if (p_.scale != nullptr || at_.has_shift || p_.residual) {
      code_.affine(out, p_.value_channels, count, kTile, Weights(p_.scale), at_.shift,
                   p_.residual ? tile : nullptr);
    }
    StoreTile(code_, out, p_.out, p_.dtype, {sample, box, 0, p_.value_channels, begin, count});
  }

  // Returns the queries of the tile of the map. Folded keys use the map itself, with a channel of ones for
  // their biases.
  const A* Queries(const ValidBox& box, int64_t count, int thread) const {
    A* tile = at_.map_tile.At(thread);
    if (Folds(box)) {
      std::fill_n(tile + p_.query_map_channels * kTile, kTile, A{1});
      return tile;
    }
    if (p_.query_weight == nullptr && p_.query_bias == nullptr) return tile;
    A* queries = at_.query_tile.At(thread);
    if (p_.query_weight == nullptr) {
      std::copy_n(tile, p_.key_channels * kTile, queries);
    } else {
      code_.product(p_.key_channels, count, p_.query_map_channels,
                    {Weights(p_.query_weight), p_.query_map_channels, 1}, tile, kTile, queries, kTile, false);
    }
    if (p_.query_bias != nullptr) {
      code_.affine(queries, p_.key_channels, count, kTile, nullptr, Weights(p_.query_bias), nullptr);
    }
    return queries;
  }

  void AttendHeads(int64_t sample, const ValidBox& box, const A* queries, int64_t count, A* out, int thread) {
    const bool folds = Folds(box);
    const int64_t depth =
        folds ? p_.query_map_channels + (p_.query_bias != nullptr ? 1 : 0) : head_key_channels();
    Arena scratch(at_.attention.At(thread));
    TileAttention<A> attention(code_, std::min(at_.row, kMaxKeys), &scratch);
    for (int64_t head = 0; head < p_.heads; ++head) {
      const A* keys = folds ? FoldedAt(sample, head) : at_.keys.At(sample, head * depth);
      const A* values = at_.values.At(sample, head * head_value_channels());
      attention.Begin(folds ? queries : queries + head * depth * kTile, count, depth,
                      out + head * head_value_channels() * kTile, head_value_channels());
      for (int64_t key = 0; key < KeysOf(box); key += kMaxKeys) {
        attention.Add({keys + key, 1, at_.row}, {values + key, at_.row, 1},
                      std::min(KeysOf(box) - key, kMaxKeys));
      }
      attention.End();
    }
  }

  // Computes a tile of average queries and stores the result in the layout of Spread.
  void AttendAverages(int64_t sample, const ValidBox& box, int64_t begin, int64_t count, int thread) {
    A* queries = at_.query_tile.At(thread);
    A* out = at_.out_tile.At(thread);
    for (int64_t c = 0; c < p_.key_channels; ++c) {
      std::copy_n(at_.queries.At(sample, c) + begin, count, queries + c * kTile);
    }
    AttendHeads(sample, box, queries, count, out, thread);
    if (p_.scale != nullptr || at_.has_shift) {
      code_.affine(out, p_.value_channels, count, kTile, Weights(p_.scale), at_.shift, nullptr);
    }
    A* attended = at_.attended + sample * at_.attended_size;
    if (at_.channels_adjacent) {
      code_.transpose(out, p_.value_channels, count, kTile, attended + begin * at_.attended_row,
                      at_.attended_row);
      return;
    }
    for (int64_t c = 0; c < p_.value_channels; ++c) {
      std::copy_n(out + c * kTile, count, attended + c * at_.attended_row + begin);
    }
  }

  int64_t RowsOfSpread() const {
    return std::max<int64_t>(kSpreadElements / std::max<int64_t>(KaoColumns(p_) * p_.value_channels, 1), 1);
  }

  int64_t SpreadTasks() const {
    if (map_queries()) return 0;
    return at_.channels_adjacent ? DivideUp(KaoRows(p_), RowsOfSpread())
                                 : DivideUp(p_.value_channels, kChannelChunk);
  }

  // Stores the outer sum of some channels, or of some rows if channels are adjacent, so that each task writes
  // contiguous memory of its own.
  void Spread(int64_t sample, int64_t task, int /*thread*/) {
    const ValidBox box(p_.extent, sample);
    at_.channels_adjacent ? SpreadRows(sample, box, task) : SpreadChannels(sample, box, task * kChannelChunk);
  }

  void SpreadChannels(int64_t sample, const ValidBox& box, int64_t channel) {
    const int64_t channels = std::min(kChannelChunk, p_.value_channels - channel);
    const A* of_columns = at_.attended + sample * at_.attended_size + channel * at_.attended_row;
    const auto x = BlockOf<const T>(p_.q, sample, box, channel, channels);
    auto out = BlockOf<T>(p_.out, sample, box, channel, channels);
    if (box.positions() > 0) {
      blocks_.spread(p_.residual ? &x : nullptr, of_columns, of_columns + box.size(2), at_.attended_row, out);
    }
    OutputMap part = p_.out;
    part.data = static_cast<T*>(p_.out.data) + channel * p_.out.channel_stride;
    ZeroPadding(part, p_.dtype, sample, p_.extent, box, channels);
  }

  void SpreadRows(int64_t sample, const ValidBox& box, int64_t task) {
    if (task == 0) ZeroPadding(p_.out, p_.dtype, sample, p_.extent, box, p_.value_channels);
    if (box.positions() == 0) return;
    const A* of_columns = at_.attended + sample * at_.attended_size;
    const int64_t end = std::min((task + 1) * RowsOfSpread(), box.size(1));
    // With padding, one row at a time, because nothing may be written past a row's end.
    const int64_t step = box.whole() ? RowsOfSpread() : 1;
    for (int64_t row = task * RowsOfSpread(); row < end; row += step) {
      auto x = BlockOf<const T>(p_.q, sample, box, 0, p_.value_channels);
      auto out = BlockOf<T>(p_.out, sample, box, 0, p_.value_channels);
      x.data += row * x.row_stride;
      out.data += row * out.row_stride;
      x.rows = out.rows = std::min(step, end - row);
      blocks_.spread(p_.residual ? &x : nullptr, of_columns,
                     of_columns + (box.size(2) + row) * at_.attended_row, at_.attended_row, out);
    }
  }

  const KaoProblem& p_;
  const TileCode<A>& code_;
  const KaoBlockCode<T>& blocks_;
  const KaoLayout<A> at_;
};

}  // namespace

size_t KaoCpuWorkspaceBytes(const KaoProblem& problem, int threads) {
  size_t bytes = 0;
  WithStoredType(problem.dtype, [&]<typename T>(T /*zero*/) {
    bytes = KaoRun<T>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
  });
  return bytes;
}

void RunKaoCpu(const KaoProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  WithStoredType(problem.dtype, [&]<typename T>(T /*zero*/) {
    KaoRun<T>(problem, isa, parallel.threads, workspace).Run(parallel);
  });
}

}  // namespace saccade::kernels
