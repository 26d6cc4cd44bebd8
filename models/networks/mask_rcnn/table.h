// EA Mask R-CNN, layer by layer. No LibTorch here.
//
// The paper counts the residual stages res1 to res4 (torchvision's layer1 to layer4) and the pyramid's levels
// fpn1 (the finest, at a quarter of the picture) to fpn5. Two forms of the pyramid:
//   paper        The stem is a 3x3 convolution and a 2x2 pooling. fpn5 is a 3x3 convolution on res4 with
//   stride 2.
//                fpn4 to fpn1 are each a 3x3 convolution of the lateral map (1x1 on res4 to res1) plus the
//                level above, doubled. The RPN looks at fpn1 to fpn4, with anchors of 32, 64, 128 and 256
//                pixels.
//   torchvision  The stem is a 7x7 convolution and a 3x3 pooling. fpn4 is made of res4's lateral map alone;
//   fpn5 is
//                every second position of fpn4, and the RPN's alone. Anchors of 32 to 512 pixels.
// What goes from a level to the one below is the sum before its 3x3 convolution. Regions are pooled from fpn1
// to fpn4 in both forms.
//
// Attention after res3 and res4 changes what the next stage and the pyramid see. On a level of the pyramid it
// is the last thing before the heads, with two consequences for fpn5: in the paper's form, where no head
// looks at fpn5, it comes before fpn5 goes down to fpn4, because it would have no effect otherwise; in
// torchvision's form fpn5 is taken from fpn4 as it was before fpn4's attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/window.h"
#include "models/networks/ledger.h"
#include "models/networks/mask_rcnn/options.h"
#include "models/networks/resnet/table.h"

namespace saccade::models {

inline constexpr int64_t kAspectRatios = 3;
inline constexpr int64_t kBoxSide = 7;     // what a region is pooled to for its box...
inline constexpr int64_t kMaskSide = 14;   // ...and for its mask, which is drawn twice as fine
inline constexpr int64_t kMaskLayers = 4;  // 3x3 convolutions before a mask is drawn

struct MaskRcnnTable {
  MaskRcnnOptions options;
  ResnetTable backbone;
  int64_t channels = 256;         // of the pyramid and the heads' convolutions
  int64_t representation = 1024;  // of a region, in the box head

  // Levels the RPN looks at; each level's anchors are twice as large as those of the level before.
  int64_t ProposalLevels() const { return options.paper_pyramid ? 4 : 5; }
};

MaskRcnnTable MakeMaskRcnnTable(const std::string& architecture, const MaskRcnnOptions& options);

// The size that counts are for: the paper's input.
inline constexpr Size kNominalInput = {896, 1280};

// How its modules are named. Levels count from 0, which is fpn1.
std::string AttentionName(AttentionPlace place);  // "backbone.attention.res3"
std::string LateralName(int level);               // "backbone.fpn.inner_blocks.0.0"
std::string LevelName(int level);                 // "backbone.fpn.layer_blocks.0.0"
inline constexpr auto kTopName = "backbone.fpn.top.0";
inline constexpr auto kBodyPrefix = "backbone.body.";

AttentionPlace PyramidPlace(int level);

// How fpn5 is made: of res4 in the paper's form, and in torchvision's of fpn4 with a kernel of 1 and as many
// positions.
inline constexpr Window kTopWindow = {.kernel = 3, .stride = 2, .padding = 1};

// Everything, for a picture of the nominal size with as many proposals and detections as the options allow.
void RecordMaskRcnn(const MaskRcnnTable& table, Ledger& ledger);

}  // namespace saccade::models
