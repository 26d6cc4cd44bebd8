#include "kernels/expatt/expatt_cpu.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/arena.h"
#include "kernels/common/valid_box.h"
#include "kernels/expatt/expatt_lines.h"
#include "kernels/expatt/expatt_tables.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {

template <>
ExpattRecursion<float> ExpattRecursionFor<float>([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx2) return Avx2ExpattRecursion();
  if (isa == CpuIsa::kAvx512) return Avx512ExpattRecursion();
#endif
  return PortableExpattRecursion();
}

template <>
ExpattRecursion<double> ExpattRecursionFor<double>(CpuIsa /*isa*/) {
  return DoubleExpattRecursion();
}

namespace {

// Splits channels into tasks: an even number of them, so that two threads get equal work. Depends on the
// channels alone.
struct ChannelGroups {
  explicit ChannelGroups(int64_t channels) {
    constexpr int64_t kMaxGroupSize = 8;
    count = channels <= kMaxGroupSize ? 1 : RoundUp(DivideUp(channels, kMaxGroupSize), 2);
    size = DivideUp(channels, count);
    count = DivideUp(channels, size);
  }
  int64_t count, size;
};

// A sample's input or output of one step: in the problem's own tensors, or in the workspace, which stores
// only the valid positions.
template <typename Map>
struct Place {
  Map map;
  Dtype dtype;
  int64_t sample;
  ValidBox box;
};

template <typename A>
class ExpattRun {
 public:
  ExpattRun(const ExpattProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem),
        isa_(isa),
        code_(TileCodeFor<A>(isa, p_.dtype)),
        groups_(p_.map_channels),
        plane_(RoundUp(PositionsOf(p_.extent), kRowPadding)) {
    Arena arena(base);
    mixed_ = arena.Take<A>(p_.before == nullptr ? 0 : p_.batch * p_.map_channels * plane_);
    mapped_ = arena.Take<A>(p_.after == nullptr ? 0 : p_.batch * p_.map_channels * plane_);
    // Scratch memory of one thread: for products over channels, or for the map.
    const int64_t from =
        std::max(p_.before == nullptr ? 0 : p_.channels, p_.after == nullptr ? 0 : p_.map_channels);
    const int64_t to =
        std::max(p_.before == nullptr ? 0 : p_.map_channels, p_.after == nullptr ? 0 : p_.out_channels);
    tiles_ = arena.Take<A>(threads * (from + to) * kTile);
    to_tile_ = from * kTile;
    thread_tile_ = (from + to) * kTile;
    Arena one_thread(nullptr);
    LinesAt(&one_thread);
    const auto for_mean = static_cast<int64_t>(sizeof(A)) * groups_.size * (kMeanPositions + 1);
    thread_scratch_ =
        p_.kind == ExpattKind::kConstant ? RoundUp(for_mean, 64) : static_cast<int64_t>(one_thread.bytes());
    scratch_ = arena.Take<std::byte>(threads * thread_scratch_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    FindTables();
    const int64_t positions = std::max<int64_t>(PositionsOf(p_.extent), 1);
    const int64_t tiles = DivideUp(positions, kTile);
    if (p_.before != nullptr) {
      RunTasks(parallel, tiles, kTile * p_.channels * p_.map_channels / kProductGain,
               [this](int64_t sample, int64_t tile, int thread) { MixBefore(sample, tile, thread); });
    }
    RunTasks(parallel, groups_.count, groups_.size * positions * (IsCheap() ? 1 : kCostOfFrequencies),
             [this](int64_t sample, int64_t group, int thread) { ApplyMap(sample, group, thread); });
    if (p_.after != nullptr) {
      RunTasks(parallel, tiles, kTile * p_.map_channels * p_.out_channels / kProductGain,
               [this](int64_t sample, int64_t tile, int thread) { MixAfter(sample, tile, thread); });
    }
  }

 private:
  // Costs relative to the work per value of a separable map: kProductGain multiply-adds of a product cost as
  // much, and a value of a map applied by frequencies costs kCostOfFrequencies times as much.
  static constexpr int64_t kProductGain = 32;
  static constexpr int64_t kCostOfFrequencies = 8;
  // Number of positions that are summed or written at a time for kConstant.
  static constexpr int64_t kMeanPositions = 256;

  bool IsCheap() const { return IsSeparable(p_.kind) || p_.kind == ExpattKind::kConstant; }

  template <typename Work>
  void RunTasks(const Parallel& parallel, int64_t tasks, int64_t cost, const Work& work) const {
    // Minimum cost of a thread's range of tasks; below it, another thread does not pay off.
    constexpr int64_t kGrainCost = 16 * 1024;
    parallel.run(p_.batch * tasks, DivideUp(kGrainCost, std::max<int64_t>(cost, 1)),
                 [&](int64_t i, int64_t end, int thread) {
                   for (; i < end; ++i) work(i / tasks, i % tasks, thread);
                 });
  }

  void FindTables() {
    if (p_.kind == ExpattKind::kConstant) return;
    tables_.resize(p_.batch);
    for (int64_t b = 0; b < p_.batch; ++b) {
      const ValidBox box(p_.extent, b);
      if (box.positions() == 0) continue;
      const bool as_before = b > 0 && p_.extent.valid == nullptr;
      tables_[b] =
          as_before ? tables_[b - 1] : ExpattTablesFor<A>(p_.kind, box.size(1), box.size(2), p_.sigma);
    }
  }

  ExpattLines<A> LinesAt(Arena* arena) const {
    return ExpattLines<A>(isa_, IsSeparable(p_.kind), groups_.size, p_.extent.size[1], p_.extent.size[2],
                          arena);
  }

  // Returns a sample's valid positions in the workspace, where they are contiguous.
  template <typename Map>
  Place<Map> Packed(A* maps, int64_t sample) const {
    const ValidBox box(p_.extent, sample);
    Extent whole;
    for (int d = 0; d < kMaxSpatialDims; ++d) whole.size[d] = box.size(d);
    Map map;
    map.data = maps + sample * p_.map_channels * plane_;
    map.channel_stride = plane_;
    map.spatial_stride[1] = box.size(2);
    map.spatial_stride[2] = 1;
    return {map, std::is_same_v<A, double> ? Dtype::kFloat64 : Dtype::kFloat32, 0, ValidBox(whole, 0)};
  }
  Place<FeatureMap> Input(int64_t sample) const {
    return {p_.x, p_.dtype, sample, ValidBox(p_.extent, sample)};
  }
  Place<OutputMap> Output(int64_t sample) const {
    return {p_.out, p_.dtype, sample, ValidBox(p_.extent, sample)};
  }

  void Load(const Place<FeatureMap>& from, int64_t channel, int64_t channels, int64_t begin, int64_t count,
            A* tile, int64_t row) const {
    LoadTile(code_, from.map, from.dtype, {from.sample, from.box, channel, channels, begin, count}, tile,
             row);
  }
  void Store(const A* tile, int64_t row, const Place<OutputMap>& to, int64_t channel, int64_t channels,
             int64_t begin, int64_t count) const {
    StoreTile(code_, tile, to.map, to.dtype, {to.sample, to.box, channel, channels, begin, count}, row);
  }

  // Computes one tile of a 1x1 convolution.
  void Mix(const void* weights, const void* bias, const Place<FeatureMap>& from, int64_t from_channels,
           const Place<OutputMap>& to, int64_t to_channels, int64_t tile, int thread) const {
    const int64_t begin = tile * kTile;
    const int64_t count = std::min(kTile, from.box.positions() - begin);
    if (count <= 0) return;
    A* x = tiles_ + thread * thread_tile_;
    A* y = x + to_tile_;
    Load(from, 0, from_channels, begin, count, x, kTile);
    code_.product(to_channels, count, from_channels, {static_cast<const A*>(weights), from_channels, 1}, x,
                  kTile, y, kTile, false);
    if (bias != nullptr) {
      code_.affine(y, to_channels, count, kTile, nullptr, static_cast<const A*>(bias), nullptr);
    }
    Store(y, kTile, to, 0, to_channels, begin, count);
  }

  void MixBefore(int64_t sample, int64_t tile, int thread) const {
    Mix(p_.before, nullptr, Input(sample), p_.channels, Packed<OutputMap>(mixed_, sample), p_.map_channels,
        tile, thread);
  }

  void MixAfter(int64_t sample, int64_t tile, int thread) const {
    const Place<OutputMap> out = Output(sample);
    if (tile == 0) ZeroPadding(out.map, out.dtype, sample, p_.extent, out.box, p_.out_channels);
    Mix(p_.after, p_.bias, Packed<FeatureMap>(mapped_, sample), p_.map_channels, out, p_.out_channels, tile,
        thread);
  }

  // Applies the map to one group of a sample's channels.
  void ApplyMap(int64_t sample, int64_t group, int thread) const {
    const Place<FeatureMap> from = p_.before != nullptr ? Packed<FeatureMap>(mixed_, sample) : Input(sample);
    const Place<OutputMap> to = p_.after != nullptr ? Packed<OutputMap>(mapped_, sample) : Output(sample);
    if (group == 0) ZeroPadding(to.map, to.dtype, to.sample, p_.extent, to.box, p_.map_channels);
    if (from.box.positions() == 0) return;
    const int64_t channel = group * groups_.size;
    const int64_t channels = std::min(groups_.size, p_.map_channels - channel);
    const A* bias =
        p_.after == nullptr && p_.bias != nullptr ? static_cast<const A*>(p_.bias) + channel : nullptr;
    if (p_.kind == ExpattKind::kConstant) {
      SpreadMeans(from, to, channel, channels, bias, thread);
      return;
    }
    const int64_t width = from.box.size(2);
    Arena arena(scratch_ + thread * thread_scratch_);
    ExpattLines<A> lines = LinesAt(&arena);
    lines.SetSize(channels, from.box.size(1), width);
    for (int64_t y = 0; y < from.box.size(1); ++y) {
      Load(from, channel, channels, y * width, width, lines.RowAt(y), lines.width_row());
    }
    lines.Apply(*tables_[sample]);
    for (int64_t y = 0; y < from.box.size(1); ++y) {
      if (bias != nullptr) {
        code_.affine(lines.RowAt(y), channels, width, lines.width_row(), nullptr, bias, nullptr);
      }
      Store(lines.RowAt(y), lines.width_row(), to, channel, channels, y * width, width);
    }
  }

  // Applies the constant map: every position gets the channel's mean.
  void SpreadMeans(const Place<FeatureMap>& from, const Place<OutputMap>& to, int64_t channel,
                   int64_t channels, const A* bias, int thread) const {
    A* tile = reinterpret_cast<A*>(scratch_ + thread * thread_scratch_);
    A* means = tile + channels * kMeanPositions;
    const int64_t positions = from.box.positions();
    const auto for_tiles = [&](const auto& visit) {
      for (int64_t begin = 0; begin < positions; begin += kMeanPositions) {
        visit(begin, std::min(kMeanPositions, positions - begin));
      }
    };
    std::fill_n(means, channels, A{0});
    for_tiles([&](int64_t begin, int64_t count) {
      Load(from, channel, channels, begin, count, tile, kMeanPositions);
      code_.add_row_sums(tile, channels, count, kMeanPositions, means);
    });
    for (int64_t c = 0; c < channels; ++c) {
      const A mean = means[c] / static_cast<A>(positions);
      std::fill_n(tile + c * kMeanPositions, std::min(kMeanPositions, positions),
                  bias == nullptr ? mean : mean + bias[c]);
    }
    for_tiles([&](int64_t begin, int64_t count) {
      Store(tile, kMeanPositions, to, channel, channels, begin, count);
    });
  }

  const ExpattProblem& p_;
  const CpuIsa isa_;
  const TileCode<A>& code_;
  const ChannelGroups groups_;
  const int64_t plane_;  // distance between the channels of a map in the workspace
  int64_t to_tile_, thread_tile_, thread_scratch_;
  size_t bytes_;
  A *mixed_, *mapped_, *tiles_;
  std::byte* scratch_;
  std::vector<std::shared_ptr<const ExpattTables<A>>> tables_;
};

}  // namespace

template <typename A>
size_t ExpattCpuWorkspaceBytes(const ExpattProblem& problem, int threads) {
  return ExpattRun<A>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
}

template <typename A>
void RunExpattCpu(const ExpattProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  ExpattRun<A>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template size_t ExpattCpuWorkspaceBytes<float>(const ExpattProblem&, int);
template size_t ExpattCpuWorkspaceBytes<double>(const ExpattProblem&, int);
template void RunExpattCpu<float>(const ExpattProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunExpattCpu<double>(const ExpattProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
