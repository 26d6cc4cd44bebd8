// The inner loops of RoIAlign: some channels of one region, once per instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/bfloat16.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// Rows of `Columns` are padded to whole vectors of every instruction set.
inline constexpr int64_t kRoiBinPadding = 16;

// What each bin of an axis weighs: the taps [begin[bin], begin[bin + 1]), each an offset in elements.
template <typename A>
struct RoiTaps {
  int64_t bins = 0;
  int32_t* begin = nullptr;
  int64_t* offset = nullptr;
  A* weight = nullptr;
};

// The last axis for maps whose channels are not adjacent. The pixels that matter are read in chunks of one
// vector each, and bins pick theirs from the chunks put end to end: `steps` rows, each of one tap per bin.
template <typename A>
struct RoiColumns {
  using Index = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  int64_t bins = 0;
  int64_t padded_bins = 0;
  int64_t chunks = 0;
  int64_t* chunk_offset = nullptr;  // in elements
  int64_t* chunk_pixels = nullptr;  // at most a vector's lanes
  int64_t reach = 0;                // the largest offset that outer axes and chunks add up to
  int64_t pixel_stride = 1;
  int64_t steps = 0;
  Index* pixel = nullptr;  // [steps, padded_bins], into the chunks
  A* weight = nullptr;     // [steps, padded_bins]
};

// Where the result goes: out[channel * channel_stride + bin * bin_stride].
template <typename T>
struct RoiTarget {
  T* data = nullptr;
  int64_t channel_stride = 0;
  int64_t bin_stride = 0;
};

template <typename T>
struct RoiAlignBlockCode {
  using A = Accumulate<T>;

  int64_t lanes;

  // Channels adjacent in the map.
  void (*along_channels)(const RoiTaps<A> axes[kMaxSpatialDims], const T* map, int64_t channels,
                         const RoiTarget<T>& out);

  // Any other map. Memory from `limit` on is not read. `scratch` holds RoiScratch() numbers.
  void (*along_columns)(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                        int64_t channels, int64_t channel_stride, const RoiTarget<T>& out, A* scratch);
};

// Channels that share the reading of a region's tables.
inline constexpr int kRoiChannels = 4;

// For `bins` bins in all and `chunks` chunks, whatever the instruction set.
inline int64_t RoiScratch(int64_t bins, int64_t chunks) {
  return kRoiChannels * (bins + 2 * kRoiBinPadding + chunks * kRoiBinPadding);
}

struct RoiAlignCode {
  RoiAlignBlockCode<float> f32;
  RoiAlignBlockCode<BFloat16> bf16;
};

const RoiAlignCode& RoiAlignPortableCode();
#if defined(__x86_64__)
const RoiAlignCode& RoiAlignAvx2Code();
const RoiAlignCode& RoiAlignAvx512Code();
#endif
// float64 is for checking, not for serving: one portable version does.
const RoiAlignBlockCode<double>& RoiAlignDoubleCode();

}  // namespace saccade::kernels
