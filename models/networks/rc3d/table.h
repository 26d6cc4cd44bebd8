// EA R-C3D, layer by layer: "R-C3D: Region Convolutional 3D Network for Temporal Activity Detection" on a 3-D
// ResNet-50, with the attention that "Efficient Attention" puts behind res3 and res4. No LibTorch here.
//
// A clip [3, F, H, W] becomes a map of F / 8 steps by H / 16 by W / 16: a ResNet with three-sided kernels
// whose stem keeps all frames, up to layer3. On each step one of every anchor's lengths is judged and moved
// (tpn.*). Of the map, the steps of each proposal are pooled to kBins, go through layer4, and are judged by
// class (head.*). F is a multiple of 16, filled up with zero frames, which the network computes as it does
// all others; only, nothing is proposed or found in them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/networks/ledger.h"
#include "models/networks/rc3d/options.h"
#include "models/networks/resnet/table.h"

namespace saccade::models {

// Frames that a step of the map stands for.
inline constexpr int64_t kStepFrames = 8;

// What a proposal's steps are pooled to: in time, height and width.
inline constexpr std::array<int64_t, 3> kBins = {4, 2, 2};

inline constexpr auto kProposalConvolution = "tpn.conv";  // 3x3x3, ReLU, then the maximum over each step
inline constexpr auto kProposalLogits = "tpn.cls_logits";
inline constexpr auto kProposalOffsets = "tpn.segment_pred";
inline constexpr auto kHeadLogits = "head.cls_score";
inline constexpr auto kHeadOffsets = "head.segment_pred";

// What stands behind stage 0 to 2: "attention.res3" behind stage 1 and "attention.res4" behind stage 2 if the
// options ask for it, and "" otherwise.
std::string AttentionBehind(const Rc3dOptions& options, int stage);

// The backbone. Its stages 0 to 2 see the clip, and stage 3 the proposals.
ResnetTable Rc3dBackbone(const Rc3dOptions& options);

// Everything, for a clip as long as the options allow, with as many proposals.
Ledger RecordRc3d(const Rc3dOptions& options);

}  // namespace saccade::models
