// Proposals and detections of one picture with shapes that do not depend on the numbers: lists of boxes are
// filled up to a fixed length and have a mask. No function waits for the device or reads from it, so all can
// be recorded (models/device/recorded.h). They compute what Propose() and Detect() compute on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/networks/mask_rcnn/box_head.h"
#include "models/networks/mask_rcnn/candidates.h"
#include "models/networks/mask_rcnn/table.h"

namespace saccade::models {

// Constants on the device of the maps, made once: a recorded pass must not copy from the host.
struct BoxConstants {
  at::Tensor cells;              // float32 [levels, kAspectRatios, 4]: the anchors at the origin
  at::Tensor proposal_weights;   // float32 [4]
  at::Tensor detection_weights;  // float32 [4]
};
BoxConstants MakeBoxConstants(int64_t levels, const at::Device& device);

// The candidates of all levels, of a batch (with a first side B) or of one picture (without it).
struct FixedCandidates {
  at::Tensor logits;   // float32 [B, N]
  at::Tensor deltas;   // float32 [B, N, 4]
  at::Tensor anchors;  // float32 [B, N, 4]: the boxes that the deltas move
  at::Tensor levels;   // int64 [N], also for a batch
  at::Tensor finite;   // bool [B]: whether all of the proposal head's outputs are

  FixedCandidates Of(int64_t picture) const;
};

// `numbers` is the proposal head's output for each level of pictures in this bucket.
FixedCandidates GatherCandidates(const std::vector<FeatureMap>& numbers, Size bucket,
                                 const MaskRcnnOptions& options, const BoxConstants& constants);

// Converts the pictures' sizes, int64 [B, 2], to the largest coordinates of boxes in them, float32 [B, 4].
at::Tensor BoundsOf(const at::Tensor& sizes);

struct FixedRegions {
  at::Tensor boxes;  // float32 [K, 4] in the scaled picture, best first; zero where not valid
  at::Tensor valid;  // bool [K]: true for the first ones
};

// Like Propose(), for one picture; `bounds` is [4]. K is the smaller of options.proposals and the number of
// candidates. There are no regions if the candidates are not finite.
FixedRegions ProposeFixed(const FixedCandidates& candidates, const at::Tensor& bounds,
                          const MaskRcnnOptions& options, const BoxConstants& constants);

struct FixedFound {
  at::Tensor boxes;   // float32 [D, 4], as in FixedRegions
  at::Tensor scores;  // float32 [D]; zero where not valid
  at::Tensor labels;  // int64 [D]; zero where not valid
  at::Tensor valid;   // bool [D]
  // bool []: whether these are all detections. Suppression looks only at the best boxes, kMaxDetectionBoxes
  // or more; what is found among them is right, but if it is less than D there may be more.
  at::Tensor complete;
};

// With more detections, eight boxes for each.
inline constexpr int64_t kMaxDetectionBoxes = 4096;

// Like Detect(). D is the smaller of options.detections and the number of regions times classes. Regions
// whose numbers are not finite are not found.
FixedFound DetectFixed(const BoxNumbers& numbers, const FixedRegions& regions, const at::Tensor& bounds,
                       const MaskRcnnOptions& options, const BoxConstants& constants);

}  // namespace saccade::models
