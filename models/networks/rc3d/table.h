// EA R-C3D, layer by layer: "R-C3D: Region Convolutional 3D Network for Temporal Activity Detection" on a 3-D
// ResNet-50, with the attention that "Efficient Attention" adds after res3 and res4. Does not include
// LibTorch.
//
// That paper's "res{x}" is the place "after the x-th ResBlock group" (tables 2 and 9): torchvision's layerX.
//
// A clip [3, F, H, W] becomes a map of F / 8 steps by H / 16 by W / 16: a ResNet with 3-D kernels whose stem
// keeps all frames, up to layer3. At each step, one anchor of each length is scored and moved (tpn.*). For
// each proposal, its steps of the map are pooled to kRegionBins, go through layer4, and are classified
// (head.*). So attention after res4 mixes the positions of one proposal's region, and not those of the clip.
// F is a multiple of 16; clips are filled up with zero frames, which the network computes like all others,
// but no proposals or actions are returned in them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/networks/ledger.h"
#include "models/networks/rc3d/options.h"
#include "models/networks/resnet/table.h"

namespace saccade::models {

// Frames per step of the map.
inline constexpr int64_t kStepFrames = 8;

// Bins to which a proposal's steps are pooled: time, height and width.
inline constexpr std::array<int64_t, 3> kRegionBins = {4, 2, 2};

inline constexpr auto kProposalConvolution = "tpn.conv";  // 3x3x3, ReLU, then the maximum over each step
inline constexpr auto kProposalLogits = "tpn.cls_logits";
inline constexpr auto kProposalOffsets = "tpn.segment_pred";
inline constexpr auto kHeadLogits = "head.cls_score";
inline constexpr auto kHeadOffsets = "head.segment_pred";

// Returns the name of the attention module after a stage, if the options include it: "attention.res3" for
// stage 2, which is layer3; otherwise "".
std::string AttentionBehind(const Rc3dOptions& options, int stage);

// Returns the backbone's table. Stages 0 to 2 compute the clip, and stage 3 the proposals.
ResnetTable Rc3dBackbone(const Rc3dOptions& options);

// Records all layers, for a clip of the maximum length with the maximum number of proposals.
Ledger RecordRc3d(const Rc3dOptions& options);

}  // namespace saccade::models
