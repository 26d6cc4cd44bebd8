// What a model answers for one picture. No LibTorch here: results outlive the tensors they came from.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace saccade::models {

struct Classification {
  std::vector<float> logits;  // one per class, all finite
};

// A thing in the picture. Its box is in pixels of the picture as it was sent, clipped to it, with real
// corners: pixel i covers [i, i + 1].
struct Detection {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;
  float score = 0;
  int64_t label = 0;
  // Probabilities on a grid of mask_side x mask_side over the box, row by row: see tasks/mask.h for what
  // becomes of them in the picture. Empty if the model draws no masks.
  std::vector<float> mask;
};

// Best score first. None is an answer.
struct Detections {
  std::vector<Detection> items = {};
  int64_t mask_side = 0;
  int64_t height = 0;  // of the picture as it was sent
  int64_t width = 0;
};

// One class a pixel of the picture as it was sent, row by row.
struct Segmentation {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> labels;
  std::vector<int64_t> areas;  // pixels of each class
};

// How many pixels further left the right picture shows what the left one shows, for every pixel of the left
// picture as it was sent, row by row. All finite and at least 0.
struct Disparity {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

// Something that happens in a clip, from one moment to another. Both count frames of the clip as it was sent:
// frame i lasts from i to i + 1.
struct Action {
  float start = 0;
  float end = 0;
  float score = 0;
  int64_t label = 0;
};

// Best score first. None is an answer.
struct Actions {
  std::vector<Action> items = {};
  int64_t frames = 0;  // of the clip as it was sent
};

// A volume without what disturbed it, plane by plane and row by row, in the units of the volume as it was
// sent. All finite. A projection has one plane.
struct Restoration {
  int64_t depth = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

// The network gave nothing usable for this picture (a logit that is not a number, say). The pictures that
// shared its batch are not affected.
struct Failure {
  std::string message;
};

using TaskResult =
    std::variant<Classification, Detections, Segmentation, Disparity, Actions, Restoration, Failure>;

}  // namespace saccade::models
