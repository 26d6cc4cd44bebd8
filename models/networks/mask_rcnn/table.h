// EA Mask R-CNN, layer by layer. Does not include LibTorch.
//
// Names follow the paper: the residual stages are res1 to res4 (torchvision's layer1 to layer4), the
// pyramid's levels are fpn1 (the finest, at a quarter of the picture) to fpn5. The pyramid has two forms:
//   paper        The stem is a 3x3 convolution and a 2x2 pooling. fpn5 is a 3x3 convolution on res4 with
//                stride 2. fpn4 to fpn1 are each a 3x3 convolution of the lateral map (1x1 on res4 to res1)
//                plus the level above, doubled. The RPN uses fpn1 to fpn4, with anchors of 32, 64, 128 and
//                256 pixels.
//   torchvision  The stem is a 7x7 convolution and a 3x3 pooling. fpn4 is made from res4's lateral map alone;
//                fpn5 is every second position of fpn4, and only the RPN uses it. Anchors of 32 to 512
//                pixels.
// A level passes the sum before its 3x3 convolution to the level below. Regions are pooled from fpn1 to fpn4
// in both forms.
//
// Attention after res3 and res4 changes the input of the next stage and of the pyramid. On a level of the
// pyramid it is the last step before the heads, with two consequences for fpn5. In the paper's form, where no
// head uses fpn5, it is applied before fpn5 is merged into fpn4, because it would have no effect otherwise.
// In torchvision's form fpn5 is taken from fpn4 before fpn4's attention.
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
inline constexpr int64_t kBoxSide = 7;           // side of a region pooled for the box head...
inline constexpr int64_t kMaskSide = 14;         // ...and for the mask head, which doubles it
inline constexpr int64_t kMaskConvolutions = 4;  // 3x3 convolutions before the mask is upscaled

struct MaskRcnnTable {
  MaskRcnnOptions options;
  ResnetTable backbone;
  int64_t channels = 256;         // of the pyramid and of the heads' convolutions
  int64_t representation = 1024;  // of a region's vector in the box head

  // Number of levels that the RPN uses; each level's anchors are twice as large as those of the level before.
  int64_t ProposalLevels() const { return options.paper_pyramid ? 4 : 5; }
};

MaskRcnnTable MakeMaskRcnnTable(const std::string& architecture, const MaskRcnnOptions& options);

// The picture size for counts: the paper's input.
inline constexpr Size kNominalInput = {896, 1280};

// Names of the modules. Levels count from 0, which is fpn1.
std::string AttentionName(AttentionPlace place);  // "backbone.attention.res3"
std::string LateralName(int level);               // "backbone.fpn.inner_blocks.0.0"
std::string LevelName(int level);                 // "backbone.fpn.layer_blocks.0.0"
inline constexpr auto kTopName = "backbone.fpn.top.0";
inline constexpr auto kBodyPrefix = "backbone.body.";

AttentionPlace PyramidPlace(int level);

// The window that makes fpn5: from res4 in the paper's form. Torchvision's form takes every second position
// of fpn4, which gives the same number of positions.
inline constexpr Window kTopWindow = {.kernel = 3, .stride = 2, .padding = 1};

// Records all layers for a picture of the nominal size, with as many proposals and detections as the options
// allow.
void RecordMaskRcnn(const MaskRcnnTable& table, Ledger& ledger);

}  // namespace saccade::models
