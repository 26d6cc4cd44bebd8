#include "models/networks/mask_rcnn/regions.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "kernels/roi_align/roi_align.h"
#include "models/device/pinned.h"

namespace saccade::models {
namespace {

constexpr std::array<double, 4> kLevelScales = {1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32};
constexpr int64_t kSamplesPerAxis = 2;  // per bin and axis

}  // namespace

RegionFeatures FeaturesOf(const std::vector<FeatureMap>& levels, int64_t picture, bool exact) {
  RegionFeatures features;
  std::vector<at::Tensor> valid;
  for (size_t level = 0; level < kLevelScales.size(); ++level) {
    features.levels.push_back(levels[level].values.narrow(0, picture, 1));
    // On the maps' device if the extents are kept there, as in a recorded pass; otherwise on the CPU.
    valid.push_back(levels[level].extents.AsValid().narrow(0, picture, 1));
  }
  if (exact) features.valid = SmallSent(at::stack(valid), features.levels.front().device());
  return features;
}

at::Tensor Pool(const RegionFeatures& features, const at::Tensor& boxes, int64_t side) {
  const at::Tensor first_sample = at::zeros({boxes.size(0), 1}, boxes.options());
  const at::Tensor regions = SmallSent(at::cat({first_sample, boxes}, 1), features.levels.front().device());
  const kernels::RoiAlignPyramid pyramid{.levels = features.levels,
                                         .spatial_scales = {kLevelScales.begin(), kLevelScales.end()}};
  return kernels::roi_align_pyramid(pyramid, regions, side, side, kSamplesPerAxis, /*aligned=*/false,
                                    features.valid)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace saccade::models
