// The candidates of the region proposal network: for each level, the anchors with the largest logits. On a
// GPU they are chosen there, so that not the whole level is copied to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/feature_map.h"
#include "models/networks/mask_rcnn/table.h"

namespace saccade::models {

// Outputs per position of a level: kAspectRatios objectness logits, then four box deltas for each anchor.
inline constexpr int64_t kProposalOutputs = kAspectRatios * 5;

// The candidates of one picture on one level, the largest logit first.
struct Candidates {
  at::Tensor logits;   // float32 [K]
  at::Tensor anchors;  // int64 [K]: (row * grid.width + column) * kAspectRatios + ratio
  at::Tensor deltas;   // float32 [K, 4]
  Size grid;           // of the level, padding included
};

// The candidates of one picture.
struct PictureCandidates {
  bool finite = false;  // whether all of the head's outputs are
  std::vector<Candidates> levels;
};

// The candidates of a batch on one level, on the maps' device. Their number does not depend on the numbers.
struct LevelCandidates {
  at::Tensor numbers;  // float32 [B, K, 5]: the logit and the deltas
  at::Tensor anchors;  // int64 [B, K]: as above
  at::Tensor finite;   // bool [B]: whether all of the head's outputs are
};

// Chooses them without waiting for the device; of equal logits the first anchors come first. With `exact`,
// the logit of positions beyond a map's extent is minus infinity, so that they come last.
LevelCandidates ChooseOnDevice(const FeatureMap& level, int64_t max_count, bool exact);

// Chooses up to `max_count` candidates for each picture and level, from the proposal head's output [B,
// kProposalOutputs, H, W] of each level. Their tensors are on the CPU. `exact`: only positions within the
// maps' extents count. `on_device`: chooses them where the maps are; of equal logits the first anchors come
// first, so that neither the batch nor the bucket changes the choice.
std::vector<PictureCandidates> ChooseCandidates(const std::vector<FeatureMap>& levels, int64_t max_count,
                                                bool exact, bool on_device);

}  // namespace saccade::models
