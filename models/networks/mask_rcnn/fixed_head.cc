#include "models/networks/mask_rcnn/fixed_head.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include "models/device/transfer.h"

namespace saccade::models {
namespace {

// The most candidates of all levels together: suppression compares each with each, one bit for a pair.
constexpr int64_t kMaxFixedCandidates = 20'000;

// A row has the number of detections, the four flags of FixedAnswer, and for each of the padded detections
// the box, the score, the label and the mask. float32 holds labels and numbers exactly.
constexpr int64_t kHeader = 5;
constexpr int64_t kBoxNumbers = 6;
constexpr int64_t kMaskNumbers = 4 * kMaskSide * kMaskSide;

// Whether all values of the rows that count are finite, bool []. `values` is [N, ...].
at::Tensor FiniteWhere(const at::Tensor& valid, const at::Tensor& values) {
  return at::isfinite(values).flatten(1).all(1).logical_or(valid.logical_not()).all();
}

}  // namespace

bool FixedHead::Fits(const MaskRcnnTable& table) {
  return table.ProposalLevels() * table.options.proposals <= kMaxFixedCandidates;
}

FixedHead::FixedHead(const MaskRcnnTable& table, const BoxHead& box_head, const MaskHead& mask_head,
                     const Target& target)
    : options_(table.options),
      box_head_(box_head),
      mask_head_(mask_head),
      constants_(MakeBoxConstants(table.ProposalLevels(), DeviceOf(target))) {}

at::Tensor FixedHead::operator()(const std::vector<FeatureMap>& levels,
                                 const std::vector<FeatureMap>& numbers, const FeatureMap& pictures) const {
  const Size bucket{pictures.values.size(2), pictures.values.size(3)};
  const FixedCandidates candidates = GatherCandidates(numbers, bucket, options_, constants_);
  const at::Tensor bounds = BoundsOf(pictures.extents.AsValid(pictures.values.device()));
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < pictures.values.size(0); ++i)
    rows.push_back(OfPicture(FeaturesOf(levels, i, options_.exact), candidates.Of(i), bounds[i]));
  return at::stack(rows);
}

at::Tensor FixedHead::OfPicture(const RegionFeatures& features, const FixedCandidates& candidates,
                                const at::Tensor& bounds) const {
  const FixedRegions regions = ProposeFixed(candidates, bounds, options_, constants_);
  const BoxNumbers numbers = box_head_.OnDevice(Pool(features, regions.boxes, kBoxSide));
  const at::Tensor finite_boxes =
      FiniteWhere(regions.valid, numbers.scores).logical_and(FiniteWhere(regions.valid, numbers.deltas));
  const FixedFound found = DetectFixed(numbers, regions, bounds, options_, constants_);
  const at::Tensor logits = mask_head_.OnDevice(Pool(features, found.boxes, kMaskSide), found.labels);
  const at::Tensor flags =
      at::stack({candidates.finite, finite_boxes, FiniteWhere(found.valid, logits), found.complete});
  const at::Tensor items = at::cat({found.boxes, found.scores.unsqueeze(1),
                                    found.labels.to(at::kFloat).unsqueeze(1), logits.sigmoid().flatten(1)},
                                   1);
  return at::cat({found.valid.sum().to(at::kFloat).view({1}), flags.to(at::kFloat), items.flatten()});
}

FixedAnswer ReadFixed(const at::Tensor& row) {
  const float* number = row.const_data_ptr<float>();
  FixedAnswer answer{.finite_proposals = number[1] != 0,
                     .finite_boxes = number[2] != 0,
                     .finite_masks = number[3] != 0,
                     .complete = number[4] != 0,
                     .found = {},
                     .masks = {}};
  const auto count = static_cast<int64_t>(number[0]);
  constexpr int64_t kItem = kBoxNumbers + kMaskNumbers;
  for (int64_t i = 0; i < count; ++i) {
    const float* item = number + kHeader + i * kItem;
    answer.found.boxes.push_back({item[0], item[1], item[2], item[3]});
    answer.found.scores.push_back(item[4]);
    answer.found.labels.push_back(static_cast<int64_t>(item[5]));
  }
  answer.masks = row.narrow(0, kHeader, count * kItem)
                     .view({count, kItem})
                     .narrow(1, kBoxNumbers, kMaskNumbers)
                     .reshape({count, 2 * kMaskSide, 2 * kMaskSide})
                     .contiguous();
  return answer;
}

}  // namespace saccade::models
