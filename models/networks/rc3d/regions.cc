#include "models/networks/rc3d/regions.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>

#include "models/networks/rc3d/table.h"

namespace saccade::models {
namespace {

// `count` positions from `first`.
struct Span {
  int64_t first = 0;
  int64_t count = 1;

  // Returns bin `index` of `bins`.
  Span Bin(int64_t index, int64_t bins) const {
    const int64_t begin = index * count / bins;
    const int64_t end = ((index + 1) * count + bins - 1) / bins;
    return {first + begin, end - begin};
  }
};

Span StepsOf(const Segment& segment, int64_t steps) {
  const auto frames = static_cast<float>(kStepFrames);
  const auto begin = std::min(static_cast<int64_t>(std::floor(segment.start / frames)), steps - 1);
  const auto end = std::min(static_cast<int64_t>(std::ceil(segment.end / frames)), steps);
  return {begin, std::max<int64_t>(end - begin, 1)};
}

// Pools height and width, which do not depend on the segment, once: [T, height bins, width bins, C].
at::Tensor PooledSteps(const at::Tensor& map) {
  const Span height{0, map.size(3)};
  const Span width{0, map.size(4)};
  std::vector<at::Tensor> bins;
  for (int64_t row = 0; row < kRegionBins[1]; ++row) {
    for (int64_t column = 0; column < kRegionBins[2]; ++column) {
      const Span tall = height.Bin(row, kRegionBins[1]);
      const Span wide = width.Bin(column, kRegionBins[2]);
      bins.push_back(map[0].narrow(2, tall.first, tall.count).narrow(3, wide.first, wide.count).amax({2, 3}));
    }
  }
  return at::stack(bins).permute({2, 0, 1}).contiguous().view(
      {map.size(2), kRegionBins[1], kRegionBins[2], map.size(1)});
}

}  // namespace

at::Tensor PoolSegments(const at::Tensor& map, const std::vector<Segment>& segments) {
  const at::Tensor steps = PooledSteps(map);
  const at::Tensor pooled = at::empty(
      {static_cast<int64_t>(segments.size()), kRegionBins[0], steps.size(1), steps.size(2), steps.size(3)},
      steps.options());
  for (size_t i = 0; i < segments.size(); ++i) {
    const Span covered = StepsOf(segments[i], map.size(2));
    const at::Tensor own = pooled[static_cast<int64_t>(i)];
    for (int64_t index = 0; index < kRegionBins[0]; ++index) {
      const Span bin = covered.Bin(index, kRegionBins[0]);
      at::Tensor out = own[index];
      at::amax_out(out, steps.narrow(0, bin.first, bin.count), 0);
    }
  }
  return pooled.permute({0, 4, 1, 2, 3});
}

}  // namespace saccade::models
