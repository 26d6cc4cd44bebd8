// All of Mask R-CNN behind the proposal head's convolutions, on the maps' device: proposals, detections and
// masks, with fixed shapes and without waiting for the device, so that a pass can be recorded whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/api/target.h"
#include "models/layers/feature_map.h"
#include "models/networks/mask_rcnn/box_head.h"
#include "models/networks/mask_rcnn/fixed_boxes.h"
#include "models/networks/mask_rcnn/mask_head.h"
#include "models/networks/mask_rcnn/regions.h"
#include "models/networks/mask_rcnn/table.h"

namespace saccade::models {

// What a FixedHead found in one picture.
struct FixedAnswer {
  bool finite_proposals = false;  // if false, nothing else holds
  bool finite_boxes = false;      // scores and deltas of the proposals
  bool finite_masks = false;
  bool complete = false;  // if false, there may be more detections (FixedFound)
  Found found;
  at::Tensor masks;  // float32 [K, 2 * kMaskSide, 2 * kMaskSide] on the CPU: probabilities
};

// Computes picture by picture with equal shapes, so that an answer does not depend on the others in its
// batch. Thread-safe.
class FixedHead {
 public:
  // Whether the candidates are few enough to compare each with each. If not, the host has to choose.
  static bool Fits(const MaskRcnnTable& table);

  // Keeps references to the heads.
  FixedHead(const MaskRcnnTable& table, const BoxHead& box_head, const MaskHead& mask_head,
            const Target& target);

  // `levels` are the pyramid's levels of `pictures`, `numbers` the proposal head's output for each. Returns
  // float32 [B, numbers of an answer]: all that the host has to fetch, for ReadFixed().
  at::Tensor operator()(const std::vector<FeatureMap>& levels, const std::vector<FeatureMap>& numbers,
                        const FeatureMap& pictures) const;

 private:
  at::Tensor OfPicture(const RegionFeatures& features, const FixedCandidates& candidates,
                       const at::Tensor& bounds) const;

  MaskRcnnOptions options_;
  const BoxHead& box_head_;
  const MaskHead& mask_head_;
  BoxConstants constants_;
};

// Reads one picture's row of a FixedHead's result, which is on the CPU and contiguous.
FixedAnswer ReadFixed(const at::Tensor& row);

}  // namespace saccade::models
