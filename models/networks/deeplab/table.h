// DeepLabV2, layer by layer. Does not include LibTorch.
//
// The backbone is the ResNet-101 of DeepLabV2's Caffe models: strides on the first 1x1, a pooling that counts
// incomplete windows, and dilated 3x3 convolutions (2 and 4) instead of the last two strides, so that its map
// has one position every 8 pixels. Names are torchvision's, at the top level.
//
// The output layer is layer5. "Kronecker Attention Networks" replaces ASPP by an attention operator with
// linear transforms on Q, K and V, and gives neither their widths nor the step from the result to the
// classes. Here:
//   reduce      1x1 convolution to head_channels, batch norm, ReLU
//   attention   Q, K, V are linear in the reduced map and as wide; the map itself is added to the result
//   classifier  1x1 convolution to the classes, with bias
// KAO_QKV can draw shapes only because of the addition: its own result is the sum of one vector per row and
// one per column, and attention tells each position what the picture contains, not what is at the position.
// Transforms as wide as the backbone's 2048 would make the layer a quarter of the network's parameters; 512
// is what segmentation heads on this backbone commonly reduce to.
//
// The keys have no bias, since it would cancel in the softmax. The coefficients go through a batch norm of
// one channel per head, as in the paper's KANets: otherwise products of 512 channels would saturate the
// softmax.
#pragma once

#include "models/api/placement.h"
#include "models/networks/deeplab/options.h"
#include "models/networks/ledger.h"
#include "models/networks/resnet/table.h"

namespace saccade::models {

// Name of the attention layer, which prefixes its parameters.
inline constexpr const char* kDeepLabAttention = "layer5.attention";

// Distance of the map's positions in pixels of the network's input. The first position is at the first pixel.
inline constexpr int64_t kDeepLabStride = 8;
// Dilations of ASPP's convolutions.
inline constexpr int64_t kAsppDilations[] = {6, 12, 18, 24};

ResnetTable DeepLabBackbone(const DeepLabOptions& options);

// Records all layers for one picture of `size`. Attention is counted as in its papers, transforms included.
// With N = h w positions and c channels: KAO_KV 2 N (h + w) c + N c^2 + 2 (h + w) c^2, KAO_QKV 2 (h + w)^2 c
// + 3 (h + w) c^2 (transforms act on the averages where they commute with them), regular attention 2 N M c +
// N c^2 + 2 M c^2 with M = N keys, or the number of pooled keys.
void RecordDeepLab(const DeepLabOptions& options, Size size, Ledger& ledger);

}  // namespace saccade::models
