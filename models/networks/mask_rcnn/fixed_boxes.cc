#include "models/networks/mask_rcnn/fixed_boxes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <tuple>

#include "kernels/nms/nms.h"
#include "models/networks/growth.h"
#include "models/networks/mask_rcnn/anchors.h"
#include "models/networks/mask_rcnn/largest.h"
#include "models/networks/mask_rcnn/proposals.h"

// A scalar argument of at::where, and at::tensor, would copy to the GPU and wait: masked_fill does not.
namespace saccade::models {
namespace {

constexpr int64_t kBoxesPerDetection = 8;
// Less than every score of a valid box.
constexpr float kNoScore = -1;

// Moved() of box.h for rows of boxes, operation by operation. The weights are a tensor because CUDA
// multiplies by a number's reciprocal instead of dividing by it.
at::Tensor MovedRows(const at::Tensor& boxes, const at::Tensor& deltas, const at::Tensor& weights) {
  const at::Tensor scaled = deltas.div(weights);
  const at::Tensor low = boxes.narrow(1, 0, 2);
  const at::Tensor sides = boxes.narrow(1, 2, 2).sub(low);
  const at::Tensor centre = scaled.narrow(1, 0, 2).mul(sides).add(sides.mul(0.5).add(low));
  const at::Tensor growth = scaled.narrow(1, 2, 2).clamp_max(MaxGrowthOffset()).exp();
  const at::Tensor half = growth.mul(sides).mul(0.5);
  return at::cat({centre.sub(half), centre.add(half)}, 1);
}

// Clipped() of box.h for rows of boxes.
at::Tensor ClippedRows(const at::Tensor& boxes, const at::Tensor& bounds) {
  return at::minimum(boxes.clamp_min(0), bounds);
}

// IsAtLeast() of box.h for rows of boxes.
at::Tensor AreAtLeast(const at::Tensor& boxes, float side) {
  return boxes.narrow(1, 2, 2).sub(boxes.narrow(1, 0, 2)).ge(side).all(1);
}

// Rows of boxes, some of which count.
struct ScoredRows {
  at::Tensor boxes;   // [N, 4]
  at::Tensor scores;  // [N], at least 0 where they count
  at::Tensor labels;  // int64 [N], at least 0
  at::Tensor valid;   // bool [N]
};

struct KeptRows {
  at::Tensor index;  // int64 [K]
  at::Tensor valid;  // bool [K]: true for the first ones
};

// Suppresses rows that overlap a better one of their label. Rows that do not count have a label of their own
// and come last, so they neither suppress one that counts nor take its place.
KeptRows KeepBest(const ScoredRows& rows, double max_overlap, int64_t max_count) {
  const at::Tensor no = rows.valid.logical_not();
  const at::Tensor padded = std::get<0>(
      kernels::nms_padded(rows.boxes.masked_fill(no.unsqueeze(1), 0), rows.scores.masked_fill(no, kNoScore),
                          max_overlap, rows.labels.masked_fill(no, -1), max_count));
  const at::Tensor index = padded.clamp_min(0);
  return {index, padded.ge(0).logical_and(rows.valid.index_select(0, index))};
}

at::Tensor BoxesOf(const ScoredRows& rows, const KeptRows& kept) {
  return rows.boxes.index_select(0, kept.index).masked_fill(kept.valid.logical_not().unsqueeze(1), 0);
}

// The boxes of anchors [B, K], numbered as in LevelCandidates; `cells` is [kAspectRatios, 4].
at::Tensor AnchorBoxes(const at::Tensor& anchors, const at::Tensor& cells, Size spacing, int64_t grid_width) {
  const at::Tensor position = anchors.div(kAspectRatios, "floor");
  const at::Tensor y = position.div(grid_width, "floor").mul(spacing.height);
  const at::Tensor x = position.remainder(grid_width).mul(spacing.width);
  const at::Tensor cell = cells.index_select(0, anchors.remainder(kAspectRatios).flatten());
  return at::stack({x, y, x, y}, 2).to(at::kFloat).add(cell.view({anchors.size(0), anchors.size(1), 4}));
}

}  // namespace

BoxConstants MakeBoxConstants(int64_t levels, const at::Device& device) {
  std::vector<float> cells;
  for (int64_t level = 0; level < levels; ++level) {
    const Anchors anchors(static_cast<int>(level), Size{1, 1});
    for (int64_t ratio = 0; ratio < kAspectRatios; ++ratio) {
      const Box cell = anchors.At(0, 0, ratio);
      cells.insert(cells.end(), {cell.x_min, cell.y_min, cell.x_max, cell.y_max});
    }
  }
  const auto on_device = [&](at::ArrayRef<float> numbers) {
    return at::tensor(numbers, at::kFloat).to(device);
  };
  return {on_device(cells).view({levels, kAspectRatios, 4}), on_device(kProposalWeights),
          on_device(kDetectionWeights)};
}

FixedCandidates FixedCandidates::Of(int64_t picture) const {
  return {logits[picture], deltas[picture], anchors[picture], levels, finite[picture]};
}

FixedCandidates GatherCandidates(const std::vector<FeatureMap>& numbers, Size bucket,
                                 const MaskRcnnOptions& options, const BoxConstants& constants) {
  std::vector<at::Tensor> rows, anchors, levels, finite;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const LevelCandidates chosen = ChooseOnDevice(numbers[i], options.proposals, options.exact);
    const Size grid{numbers[i].values.size(2), numbers[i].values.size(3)};
    const auto level = static_cast<int64_t>(i);
    const Size spacing = SpacingOf(static_cast<int>(i), bucket, grid, options.exact);
    rows.push_back(chosen.numbers);
    anchors.push_back(AnchorBoxes(chosen.anchors, constants.cells[level], spacing, grid.width));
    levels.push_back(at::full({chosen.anchors.size(1)}, level, chosen.anchors.options()));
    finite.push_back(chosen.finite);
  }
  const at::Tensor all = at::cat(rows, 1);
  return {all.select(2, 0).contiguous(), all.narrow(2, 1, 4), at::cat(anchors, 1), at::cat(levels),
          at::stack(finite).all(0)};
}

at::Tensor BoundsOf(const at::Tensor& sizes) {
  const at::Tensor height = sizes.select(1, 0);
  const at::Tensor width = sizes.select(1, 1);
  return at::stack({width, height, width, height}, 1).to(at::kFloat);
}

FixedRegions ProposeFixed(const FixedCandidates& candidates, const at::Tensor& bounds,
                          const MaskRcnnOptions& options, const BoxConstants& constants) {
  const at::Tensor boxes =
      ClippedRows(MovedRows(candidates.anchors, candidates.deltas, constants.proposal_weights), bounds);
  // With the option `exact`, padding has infinite logits.
  const at::Tensor valid = at::isfinite(candidates.logits)
                               .logical_and(candidates.finite)
                               .logical_and(AreAtLeast(boxes, kMinProposalSide));
  const ScoredRows rows{boxes, at::sigmoid(candidates.logits), candidates.levels, valid};
  const KeptRows kept = KeepBest(rows, kMaxProposalOverlap, options.proposals);
  return {BoxesOf(rows, kept), kept.valid};
}

FixedFound DetectFixed(const BoxNumbers& numbers, const FixedRegions& regions, const at::Tensor& bounds,
                       const MaskRcnnOptions& options, const BoxConstants& constants) {
  const int64_t objects = options.classes - 1;  // classes without the background, which is class 0
  const at::Tensor scores = numbers.scores.narrow(1, 1, objects);
  const at::Tensor above =
      scores.gt(static_cast<float>(options.score_threshold)).logical_and(regions.valid.unsqueeze(1));
  const at::Tensor ranked = scores.masked_fill(above.logical_not(), kNoScore).flatten();
  const int64_t count =
      std::min(ranked.numel(), std::max(kMaxDetectionBoxes, kBoxesPerDetection * options.detections));
  const at::Tensor chosen = FirstOfLargest(ranked.unsqueeze(0), count).select(0, 0);
  const at::Tensor region = chosen.div(objects, "floor");
  const at::Tensor label = chosen.remainder(objects).add(1);
  const at::Tensor deltas =
      numbers.deltas.view({-1, 4}).index_select(0, region.mul(options.classes).add(label));
  const at::Tensor boxes = ClippedRows(
      MovedRows(regions.boxes.index_select(0, region), deltas, constants.detection_weights), bounds);
  const at::Tensor score = ranked.index_select(0, chosen);
  const ScoredRows rows{boxes, score, label, score.ge(0).logical_and(AreAtLeast(boxes, kMinDetectionSide))};
  const KeptRows kept = KeepBest(rows, options.nms_threshold, options.detections);
  const at::Tensor no = kept.valid.logical_not();
  return {BoxesOf(rows, kept), score.index_select(0, kept.index).masked_fill(no, 0),
          label.index_select(0, kept.index).masked_fill(no, 0), kept.valid,
          above.sum().le(count).logical_or(kept.valid.all())};
}

}  // namespace saccade::models
