// EA R-C3D's options: how its weights were trained, and which actions to return. Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/api/options.h"

namespace saccade::models {

// Frames, height and width must be multiples of this. One step of the map for proposals covers half as many
// frames, and as many pixels.
inline constexpr int64_t kRc3dStride = 16;

struct Rc3dOptions {
  // attention=none, or places of res1 to res4 separated by commas: efficient attention after "the x-th
  // ResBlock group". resN is torchvision's layerN.
  std::vector<std::string> attention = {"res3", "res4"};
  std::string normalization = "softmax";  // normalization=softmax|scaling
  int64_t heads = 1;                      // heads=1..64: must divide key_channels and value_channels
  int64_t key_channels = 64;              // key_channels=1..1024
  int64_t value_channels = 64;            // value_channels=1..1024
  int64_t classes = 21;                   // classes=2..10000, the background included, which is class 0
  int64_t frames = 768;                   // frames=16..4096, a multiple of 16: maximum frames of a clip
  int64_t size = 112;                     // size=32..512, a multiple of 16: height and width
  double frames_per_second = 25;          // frames_per_second=1..240: rate at which videos are sampled
  // anchors=N,N,..., 1 to 64 of 1..512: lengths of the anchors, in steps of 8 frames.
  std::vector<int64_t> anchors = {2, 4, 5, 6, 8, 9, 10, 12, 14, 16};
  double score_threshold = 0.05;  // score_threshold=0..1: minimum score of detections
  double nms_threshold = 0.4;     // nms_threshold=0..1: for detections of one class
  int64_t detections = 100;       // detections=1..1000: maximum per clip
  int64_t proposals = 300;        // proposals=1..2000: maximum per clip
  double width = 1;               // width=0.125..1, in eighths: multiplies all channels except attention's
  std::array<int64_t, 4> blocks = {3, 4, 6, 3};  // blocks=N,N,N,N, each 1..64
};

// Throws a LoadError that lists the legal names or values.
Rc3dOptions ParseRc3dOptions(const std::string& architecture, const Options& options);

// Returns all options with their values, as text.
Options AsText(const Rc3dOptions& options);

}  // namespace saccade::models
