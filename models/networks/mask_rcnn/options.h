// Mask R-CNN's options: how its weights were trained, and which detections to return. Does not include
// LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

// Positions of attention modules, in order of execution, except that the pyramid runs from fpn5 to fpn1.
enum class AttentionPlace { kRes3, kRes4, kFpn1, kFpn2, kFpn3, kFpn4, kFpn5 };
inline constexpr int kAttentionPlaces = 7;

// Returns "res3", ..., "fpn5".
const char* PlaceName(AttentionPlace place);

struct MaskRcnnOptions {
  bool paper_pyramid = true;  // fpn=paper|torchvision
  std::vector<AttentionPlace> attention = {AttentionPlace::kRes3, AttentionPlace::kRes4,
                                           AttentionPlace::kFpn1, AttentionPlace::kFpn2,
                                           AttentionPlace::kFpn3, AttentionPlace::kFpn4,
                                           AttentionPlace::kFpn5};  // attention=none, or a list with commas
  // operator=efficient|non_local: non_local is what EA's paper compares its attention with.
  bool efficient = true;
  bool softmax = true;               // normalization=softmax|scaling
  int64_t heads = 1;                 // heads=1..64
  int64_t key_channels = 64;         // key_channels=1..1024, a multiple of heads
  int64_t value_channels = 64;       // value_channels=1..1024, a multiple of heads
  int64_t classes = 91;              // classes=2..10000, the background included, which is class 0
  int64_t short_side = 800;          // short_side=32..4096: the shorter side is scaled to this...
  int64_t long_side = 1333;          // long_side=32..8192: ...or less, so that the longer is at most this
  Buckets buckets = {{}, 32};        // buckets=stride:N, or sizes
  bool reduced_jpeg = false;         // reduced_jpeg=true|false: large JPEGs are shrunk while they are decoded
  double score_threshold = 0.05;     // score_threshold=0..1: minimum score of detections
  double nms_threshold = 0.5;        // nms_threshold=0..1: for detections of one class
  int64_t detections = 100;          // detections=1..1000: maximum per picture
  int64_t proposals = 1000;          // proposals=1..10000: per level before, per picture after suppression
  double batch_norm_epsilon = 1e-5;  // batch_norm_epsilon=0..0.1: torchvision's published weights need 0
  bool exact = false;                // exact=true|false: padding is zeroed again after every layer
  double width = 1;                  // width=0.125..1, in eighths: multiplies all channels except attention's
  std::array<int64_t, 4> blocks = {3, 4, 6, 3};  // blocks=N,N,N,N, each 1..64

  bool Attends(AttentionPlace place) const;
};

// Parses the options of ea_mask_rcnn_r50, _r101 and _x101, whose default blocks differ, and of torchvision's
// maskrcnn_resnet50_fpn, whose defaults are those of its published weights. Throws a LoadError
// that lists the legal names or values.
MaskRcnnOptions ParseMaskRcnnOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const MaskRcnnOptions& options);

// Whether the backbone is ResNeXt-101 (32x4d).
bool IsResnext(const std::string& architecture);

}  // namespace saccade::models
