#include "kernels/roi_align/roi_align_cpu.h"

#include <algorithm>
#include <type_traits>

#include "kernels/common/arena.h"
#include "kernels/roi_align/roi_align_axis.h"
#include "kernels/roi_align/roi_align_blocks.h"

namespace saccade::kernels {
namespace {

const RoiAlignCode& CodeOf(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx2) return RoiAlignAvx2Code();
  if (isa == CpuIsa::kAvx512) return RoiAlignAvx512Code();
#endif
  return RoiAlignPortableCode();
}

template <typename T>
const RoiAlignBlockCode<T>& CodeFor([[maybe_unused]] CpuIsa isa) {
  if constexpr (std::is_same_v<T, double>) {
    return RoiAlignDoubleCode();
  } else if constexpr (std::is_same_v<T, float>) {
    return CodeOf(isa).f32;
  } else {
    return CodeOf(isa).bf16;
  }
}

// Weights are the same for all channels, so each region's are computed once. Groups of channels form the
// outer loop, so that a group's planes stay in the cache from one region to the next.
template <typename T>
class RoiAlignRun {
 public:
  using A = Accumulate<T>;

  RoiAlignRun(const RoiAlignProblem& problem, CpuIsa isa, int threads, std::byte* base)
      : p_(problem), code_(CodeFor<T>(isa)), bins_(BinsOf(problem)) {
    Arena arena(base);
    regions_ = arena.Take<Region>(p_.regions);
    int64_t chunks = 0;
    for (int64_t k = 0; k < p_.regions; ++k) {
      Region region = Lay(k, &arena);
      chunks = std::max(chunks, region.columns.chunks);
      if (base != nullptr) regions_[k] = region;
    }
    scratch_row_ = RoundUp(RoiScratch(bins_, chunks), 16);
    scratch_ = arena.Take<A>(threads * scratch_row_);
    bytes_ = arena.bytes();
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    // Minimum number of bins per thread; below it, another thread does not pay off.
    constexpr int64_t kGrainBins = 2048;
    const int64_t region_grain =
        std::max<int64_t>(kGrainBins / (p_.pooled[0] + p_.pooled[1] + p_.pooled[2]) / 8, 1);
    parallel.run(p_.regions, region_grain, [this](int64_t k, int64_t end, int) {
      for (; k < end; ++k) Fill(&regions_[k]);
    });
    const int64_t group = ChannelGroup();
    const int64_t groups = DivideUp(p_.channels, group);
    const int64_t blocks = DivideUp(p_.regions, kRegionBlock);
    const int64_t grain = DivideUp(kGrainBins, bins_ * group * std::min(p_.regions, kRegionBlock));
    parallel.run(groups * blocks, grain, [=, this](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) {
        const int64_t channel = i / blocks * group;
        const int64_t first = i % blocks * kRegionBlock;
        const int64_t last = std::min(first + kRegionBlock, p_.regions);
        for (int64_t k = first; k < last; ++k) {
          Pool(k, channel, std::min(group, p_.channels - channel), scratch_ + thread * scratch_row_);
        }
      }
    });
  }

 private:
  static constexpr int64_t kRegionBlock = 64;

  struct Region {
    const RoiAlignLevel* level = nullptr;  // null: the result is zero
    int64_t sample = 0;
    RoiAxis<A> axis[kMaxSpatialDims];
    RoiTaps<A> taps[kMaxSpatialDims];  // the last one only if channels are adjacent
    RoiColumns<A> columns;             // otherwise this
  };

  static bool ChannelsAdjacent(const FeatureMap& map) {
    return map.channel_stride == 1 && map.spatial_stride[2] != 1;
  }

  // Computes a region's axes and takes memory for its tables, which Fill() fills in.
  Region Lay(int64_t k, Arena* arena) const {
    Region region;
    const int64_t level = p_.level_of == nullptr ? 0 : p_.level_of[k];
    if (level < 0 || level >= p_.levels) return region;
    region.level = &p_.level[level];
    region.sample = static_cast<int64_t>(static_cast<const A*>(p_.rois)[k * NumbersPerRegion(p_)]);
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      region.axis[d] = RoiAxisOf<A>(p_, *region.level, k, d);
      const int64_t taps = region.axis[d].MaxTaps();
      if (d == 2 && !ChannelsAdjacent(region.level->map)) {
        LayColumns(taps, arena, &region.columns);
        continue;
      }
      region.taps[d].bins = p_.pooled[d];
      region.taps[d].begin = arena->Take<int32_t>(p_.pooled[d] + 1);
      region.taps[d].offset = arena->Take<int64_t>(p_.pooled[d] * taps);
      region.taps[d].weight = arena->Take<A>(p_.pooled[d] * taps);
    }
    return region;
  }

  void LayColumns(int64_t taps, Arena* arena, RoiColumns<A>* columns) const {
    columns->bins = p_.pooled[2];
    columns->padded_bins = RoundUp(columns->bins, kRoiBinPadding);
    columns->steps = taps;
    columns->chunks = columns->bins * taps;
    columns->chunk_offset = arena->Take<int64_t>(columns->chunks);
    columns->chunk_pixels = arena->Take<int64_t>(columns->chunks);
    columns->pixel = arena->Take<typename RoiColumns<A>::Index>(taps * columns->padded_bins);
    columns->weight = arena->Take<A>(taps * columns->padded_bins);
  }

  void Fill(Region* region) const {
    if (region->level == nullptr) return;
    const FeatureMap& map = region->level->map;
    int64_t reach = 0;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      if (d == 2 && !ChannelsAdjacent(map)) {
        FillColumns(region->axis[d], map.spatial_stride[d], &region->columns);
        break;
      }
      RoiTaps<A>& taps = region->taps[d];
      int32_t count = 0;
      int64_t last = 0;
      for (int64_t bin = 0; bin < taps.bins; ++bin) {
        taps.begin[bin] = count;
        region->axis[d].ForTaps(bin, [&](int64_t pixel, A weight) {
          last = std::max(last, pixel * map.spatial_stride[d]);
          taps.offset[count] = pixel * map.spatial_stride[d];
          taps.weight[count++] = weight;
        });
      }
      taps.begin[taps.bins] = count;
      reach += last;
    }
    for (int64_t chunk = 0; chunk < region->columns.chunks; ++chunk) {
      region->columns.reach = std::max(region->columns.reach, reach + region->columns.chunk_offset[chunk]);
    }
  }

  // Returns the index of a pixel in the concatenated chunks. The first pixel that no chunk holds yet starts a
  // new chunk, so ranges of a vector or more that no bin needs are skipped. Pixels arrive in increasing
  // order, except that a bin may begin where the previous one ended.
  int64_t PlaceOf(int64_t pixel, RoiColumns<A>* columns) const {
    for (int64_t chunk = columns->chunks - 1; chunk >= 0 && chunk >= columns->chunks - 2; --chunk) {
      const int64_t lane = pixel - columns->chunk_offset[chunk];
      if (lane < 0 || lane >= code_.lanes) continue;
      columns->chunk_pixels[chunk] = std::max(columns->chunk_pixels[chunk], lane + 1);
      return chunk * code_.lanes + lane;
    }
    columns->chunk_offset[columns->chunks] = pixel;  // multiplied by the stride once all are known
    columns->chunk_pixels[columns->chunks] = 1;
    return columns->chunks++ * code_.lanes;
  }

  void FillColumns(const RoiAxis<A>& axis, int64_t stride, RoiColumns<A>* columns) const {
    std::fill_n(columns->pixel, columns->steps * columns->padded_bins, 0);
    std::fill_n(columns->weight, columns->steps * columns->padded_bins, A{0});
    columns->pixel_stride = stride;
    columns->chunks = columns->steps = 0;
    for (int64_t i = 0; i < columns->bins; ++i) {
      // The bins of a region with swapped ends are in decreasing order.
      const int64_t bin = axis.bin >= 0 ? i : columns->bins - 1 - i;
      int64_t step = 0;
      axis.ForTaps(bin, [&](int64_t pixel, A weight) {
        const int64_t at = step++ * columns->padded_bins + bin;
        columns->pixel[at] = static_cast<typename RoiColumns<A>::Index>(PlaceOf(pixel, columns));
        columns->weight[at] = weight;
      });
      columns->steps = std::max(columns->steps, step);
    }
    for (int64_t chunk = 0; chunk < columns->chunks; ++chunk) columns->chunk_offset[chunk] *= stride;
  }

  // Returns so few channels that their planes fit in the L2 cache. If channels are adjacent, returns more, so
  // that each pixel is one contiguous range of memory.
  int64_t ChannelGroup() const {
    constexpr int64_t kCacheBytes = 512 * 1024;
    if (ChannelsAdjacent(p_.level[0].map))
      return p_.regions > kRegionBlock ? p_.channels : std::min<int64_t>(p_.channels, 64);
    int64_t largest = 1;
    for (int level = 0; level < p_.levels; ++level)
      largest = std::max(largest, PositionsOf(p_.level[level].extent));
    return std::clamp<int64_t>(kCacheBytes / static_cast<int64_t>(sizeof(T)) / largest, 1,
                               std::min<int64_t>(p_.channels, 32));
  }

  void Pool(int64_t k, int64_t channel, int64_t channels, A* scratch) const {
    const Region& region = regions_[k];
    RoiTarget<T> out;
    out.channel_stride = p_.channels_last ? 1 : bins_;
    out.bin_stride = p_.channels_last ? p_.channels : 1;
    out.data = static_cast<T*>(p_.out) + k * p_.channels * bins_ + channel * out.channel_stride;
    if (region.level == nullptr) {
      for (int64_t bin = 0; bin < bins_; ++bin) {
        for (int64_t c = 0; c < channels; ++c)
          out.data[bin * out.bin_stride + c * out.channel_stride] = T(A{0});
      }
      return;
    }
    const FeatureMap& map = region.level->map;
    const T* data = static_cast<const T*>(map.data);
    const T* limit = data + region.level->elements;
    data += region.sample * map.batch_stride + channel * map.channel_stride;
    if (ChannelsAdjacent(map)) {
      code_.along_channels(region.taps, data, channels, out);
    } else {
      code_.along_columns(region.taps, region.columns, data, limit, channels, map.channel_stride, out,
                          scratch);
    }
  }

  const RoiAlignProblem& p_;
  const RoiAlignBlockCode<T>& code_;
  const int64_t bins_;
  int64_t scratch_row_;
  size_t bytes_;
  Region* regions_;
  A* scratch_;
};

}  // namespace

template <typename T>
size_t RoiAlignCpuWorkspaceBytes(const RoiAlignProblem& problem, int threads) {
  return RoiAlignRun<T>(problem, CpuIsa::kPortable, threads, nullptr).bytes();
}

template <typename T>
void RunRoiAlignCpu(const RoiAlignProblem& problem, CpuIsa isa, const Parallel& parallel,
                    std::byte* workspace) {
  RoiAlignRun<T>(problem, isa, parallel.threads, workspace).Run(parallel);
}

template size_t RoiAlignCpuWorkspaceBytes<float>(const RoiAlignProblem&, int);
template size_t RoiAlignCpuWorkspaceBytes<double>(const RoiAlignProblem&, int);
template size_t RoiAlignCpuWorkspaceBytes<BFloat16>(const RoiAlignProblem&, int);
template void RunRoiAlignCpu<float>(const RoiAlignProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunRoiAlignCpu<double>(const RoiAlignProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunRoiAlignCpu<BFloat16>(const RoiAlignProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
