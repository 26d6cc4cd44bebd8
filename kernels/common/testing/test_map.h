// A random feature map for the tests without LibTorch: either layout, with NaN in the padding.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "kernels/common/feature_map.h"

namespace saccade::kernels {

template <typename T>
inline constexpr Dtype kDtypeOf = std::is_same_v<T, double>     ? Dtype::kFloat64
                                  : std::is_same_v<T, float>    ? Dtype::kFloat32
                                  : std::is_same_v<T, BFloat16> ? Dtype::kBFloat16
                                                                : Dtype::kFloat16;

// Returns true if a position (numbered over the full extent) is valid in a sample.
inline bool TakesPart(const Extent& extent, int64_t sample, int64_t position) {
  if (extent.valid == nullptr) return true;
  for (int d = kMaxSpatialDims - 1; d >= kMaxSpatialDims - extent.spatial_dims; --d) {
    const int given = d - (kMaxSpatialDims - extent.spatial_dims);
    if (position % extent.size[d] >= extent.valid[sample * extent.spatial_dims + given]) return false;
    position /= extent.size[d];
  }
  return true;
}

inline std::vector<int64_t> ValidPositions(const Extent& extent, int64_t sample) {
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < PositionsOf(extent); ++n) {
    if (TakesPart(extent, sample, n)) positions.push_back(n);
  }
  return positions;
}

// An owned map [batch, channels, *spatial] of T.
template <typename T>
class TestMap {
 public:
  using A = Accumulate<T>;

  TestMap() = default;
  // Fills valid positions with random values and all others with NaN.
  TestMap(std::mt19937& random, int64_t batch, int64_t channels, const Extent& extent, bool channels_last)
      : channels_(channels), extent_(extent), channels_last_(channels_last) {
    std::normal_distribution<float> normal(0.2f, 1.0f);
    values_.reserve(static_cast<size_t>(batch * channels * PositionsOf(extent)));
    for (int64_t i = 0; i < batch * channels * PositionsOf(extent); ++i) values_.push_back(T(normal(random)));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t n = 0; n < PositionsOf(extent); ++n) {
        for (int64_t c = 0; c < channels && !TakesPart(extent, b, n); ++c) values_[At(b, c, n)] = Poison();
      }
    }
  }
  // For a result: all elements are NaN.
  static TestMap Unwritten(int64_t batch, int64_t channels, const Extent& extent, bool channels_last) {
    TestMap map;
    map.channels_ = channels;
    map.extent_ = extent;
    map.channels_last_ = channels_last;
    map.values_.assign(static_cast<size_t>(batch * channels * PositionsOf(extent)), Poison());
    return map;
  }

  double operator()(int64_t b, int64_t c, int64_t n) const {
    return static_cast<double>(static_cast<A>(values_[At(b, c, n)]));
  }

  FeatureMap View() const { return Strided<FeatureMap>(values_.data()); }
  OutputMap Output() { return Strided<OutputMap>(values_.data()); }
  const std::vector<T>& values() const { return values_; }

 private:
  static T Poison() { return T(std::numeric_limits<float>::quiet_NaN()); }

  size_t At(int64_t b, int64_t c, int64_t n) const {
    const int64_t positions = PositionsOf(extent_);
    return static_cast<size_t>(channels_last_ ? (b * positions + n) * channels_ + c
                                              : (b * channels_ + c) * positions + n);
  }

  template <typename Map, typename Pointer>
  Map Strided(Pointer* data) const {
    const int64_t step = channels_last_ ? channels_ : 1;
    return {data,
            channels_ * PositionsOf(extent_),
            channels_last_ ? 1 : PositionsOf(extent_),
            {extent_.size[1] * extent_.size[2] * step, extent_.size[2] * step, step}};
  }

  int64_t channels_ = 0;
  Extent extent_;
  bool channels_last_ = false;
  std::vector<T> values_;
};

// Returns weights in the accumulation type of T.
template <typename T>
std::vector<Accumulate<T>> TestWeights(std::mt19937& random, int64_t count, double divisor) {
  std::normal_distribution<double> normal(0.1, 1.0);
  std::vector<Accumulate<T>> values(static_cast<size_t>(count));
  for (auto& value : values) value = static_cast<Accumulate<T>>(normal(random) / divisor);
  return values;
}

// Returns the relative L2 distance of a result from `expected(sample)`, which returns [channels][positions]
// in float64 with zeros in the padding. result(sample, channel, position) returns a value, as a TestMap does.
template <typename Result, typename Expected>
double RelativeDistance(const Result& result, int64_t batch, int64_t channels, int64_t positions,
                        const Expected& expected) {
  double difference = 0;
  double norm = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const std::vector<double> want = expected(b);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t n = 0; n < positions; ++n) {
        const double off = result(b, c, n) - want[static_cast<size_t>(c * positions + n)];
        difference += off * off;
        norm += want[static_cast<size_t>(c * positions + n)] * want[static_cast<size_t>(c * positions + n)];
      }
    }
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace saccade::kernels
