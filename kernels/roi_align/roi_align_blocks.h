// The inner loops of RoIAlign, for some channels of one region, once per instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/bfloat16.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

// Rows of RoiColumns are padded to a multiple of this, which is a whole number of vectors for every
// instruction set.
inline constexpr int64_t kRoiBinPadding = 16;

// The weights of an axis's bins: bin `bin` has the taps [begin[bin], begin[bin + 1]), each with an offset in
// elements.
template <typename A>
struct RoiTaps {
  int64_t bins = 0;
  int32_t* begin = nullptr;
  int64_t* offset = nullptr;
  A* weight = nullptr;
};

// The last axis of maps whose channels are not adjacent. The needed pixels are read in chunks of one vector
// each, and bins select theirs from the concatenated chunks, in `steps` rows with one tap per bin.
template <typename A>
struct RoiColumns {
  using Index = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  int64_t bins = 0;
  int64_t padded_bins = 0;
  int64_t chunks = 0;
  int64_t* chunk_offset = nullptr;  // in elements
  int64_t* chunk_pixels = nullptr;  // at most the number of lanes of a vector
  int64_t reach = 0;                // largest sum of offsets of the outer axes and chunks
  int64_t pixel_stride = 1;
  int64_t steps = 0;
  Index* pixel = nullptr;  // [steps, padded_bins], index into the concatenated chunks
  A* weight = nullptr;     // [steps, padded_bins]
};

// Destination of the result: out[channel * channel_stride + bin * bin_stride].
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

  // For maps whose channels are adjacent.
  void (*along_channels)(const RoiTaps<A> axes[kMaxSpatialDims], const T* map, int64_t channels,
                         const RoiTarget<T>& out);

  // For any other map. Does not read memory from `limit` on. `scratch` has room for RoiScratch() elements.
  void (*along_columns)(const RoiTaps<A> outer[2], const RoiColumns<A>& columns, const T* map, const T* limit,
                        int64_t channels, int64_t channel_stride, const RoiTarget<T>& out, A* scratch);
};

// Number of channels that are processed together and share reading a region's tables.
inline constexpr int kRoiChannels = 4;

// Returns the scratch size in elements for `bins` bins in total and `chunks` chunks, for any instruction set.
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
// float64 is for checking only, so it has only a portable version.
const RoiAlignBlockCode<double>& RoiAlignDoubleCode();

}  // namespace saccade::kernels
