// DeepLabV2's layers, written down one after the other. No LibTorch here.
//
// The backbone is the ResNet-101 of DeepLabV2's Caffe models: strides on the first 1x1, a pooling that keeps
// a rest, and dilated 3x3 convolutions (2 and 4) instead of the last two strides, so that its map has one
// position every 8 pixels. Names are torchvision's, at the top level.
//
// The output layer, layer5. "Kronecker Attention Networks" replaces ASPP by an attention operator with linear
// transforms on Q, K and V, and gives neither widths nor how classes come out of it. Here:
//   reduce      1x1 convolution to head_channels, batch norm, ReLU
//   attention   Q, K, V are linear in the reduced map and as wide; the map itself is added to the result
//   classifier  1x1 convolution to the classes, with bias
// The addition is what lets KAO_QKV draw shapes at all: its own answer is one vector a row plus one a column,
// and attention tells each position what the picture holds, not what is at the position. Transforms as wide
// as the backbone's 2048 would make the layer a quarter of the network's parameters; 512 is what
// segmentation heads on this backbone commonly reduce to.
//
// The keys have no bias, since it would be the same in all that one softmax sees. The coefficients go through
// a batch norm of one channel a head, as the paper does in KANets: products of 512 channels would otherwise
// leave the softmax nothing but zeros and ones.
#pragma once

#include "models/networks/deeplab/options.h"
#include "models/networks/ledger.h"
#include "models/networks/resnet/table.h"
#include "models/placement.h"

namespace saccade::models {

// Its attention, as its parameters are named.
inline constexpr const char* kDeepLabAttention = "layer5.attention";

// One position of the map every so many pixels of the network's input, the first at the first pixel.
inline constexpr int64_t kDeepLabStride = 8;
// Of ASPP's convolutions.
inline constexpr int64_t kAsppDilations[] = {6, 12, 18, 24};

ResnetTable DeepLabBackbone(const DeepLabOptions& options);

// Records all layers for one picture of `size`. Attention is counted as its papers do, transforms included:
// with N = h w positions, c channels, KAO_KV 2 N (h + w) c + N c^2 + 2 (h + w) c^2, KAO_QKV
// 2 (h + w)^2 c + 3 (h + w) c^2 (transforms act on the averages where they commute with them), regular
// attention 2 N M c + 3 N c^2 with M = N keys, or the pooled ones.
void RecordDeepLab(const DeepLabOptions& options, Size size, Ledger& ledger);

}  // namespace saccade::models
