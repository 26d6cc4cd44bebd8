// A model's result for one item. Does not include LibTorch: results outlive the tensors they are made from.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace saccade::models {

// The function that makes a classification's probabilities of its logits.
enum class LogitFunction {
  // Over all logits: the classes exclude each other.
  kSoftmax,
  // Each logit has its own probability.
  kSigmoid,
  // Each logit is the logarithm of its probability.
  kExp
};

struct Classification {
  std::vector<float> logits;  // one per class, all finite
  LogitFunction function = LogitFunction::kSoftmax;
};

// A named point of an object, in pixels of the picture as it was sent.
struct Keypoint {
  float x = 0;
  float y = 0;
  float score = 0;
};

// Where the cells of a mask lie in the picture as it was sent, in pixels.
struct MaskFrame {
  float x = 0;  // the first cell's left edge
  float y = 0;  // the first cell's upper edge
  float cell_width = 0;
  float cell_height = 0;
  int64_t columns = 0;  // 0: the mask has no frame
  int64_t rows = 0;
};

// An object in the picture. Its box is in pixels of the picture as it was sent, clipped to it, with
// fractional corners: pixel i covers [i, i + 1].
struct Detection {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;
  float score = 0;
  int64_t label = 0;
  // Probabilities on a grid of mask_side x mask_side over the box, row by row; tasks/mask.h converts them to
  // the picture's pixels. Empty if the model has no masks.
  std::vector<float> mask;
  // If it has columns, the mask is on this grid instead, row by row, and ends at the box.
  MaskFrame frame = {};
  // In the model's order; empty if the model has no keypoints.
  std::vector<Keypoint> keypoints = {};
};

// Detections in descending order of score. May be empty.
struct Detections {
  std::vector<Detection> items = {};
  // Masks with a frame are interpolated to a grid of this side where all have to have one size.
  int64_t mask_side = 0;
  int64_t height = 0;  // of the picture as it was sent
  int64_t width = 0;
};

// One class per pixel of the picture as it was sent, row by row.
struct Segmentation {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> labels;
  std::vector<int64_t> areas;  // pixels of each class
};

// For every pixel of the left picture as it was sent, row by row: how many pixels further left the right
// picture shows the same point. For a single picture: its depth, in the network's own unit. All values are
// finite and at least 0.
struct Disparity {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

// An action in a clip. Start and end count frames of the clip as it was sent: frame i lasts from i to i + 1.
struct Action {
  float start = 0;
  float end = 0;
  float score = 0;
  int64_t label = 0;
};

// Actions in descending order of score. May be empty.
struct Actions {
  std::vector<Action> items = {};
  int64_t frames = 0;  // of the clip as it was sent
};

// A restored volume, plane by plane and row by row, in the units of the volume as it was sent. All values are
// finite. A projection has one plane.
struct Restoration {
  int64_t depth = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<float> values;
};

// A picture as a vector, to compare it with others.
struct Embedding {
  std::vector<float> values;  // all finite
};

// The item has no usable result (a logit that is not finite, for example). Other items of its batch are not
// affected.
struct Failure {
  std::string message;
  // Whether the item itself is wrong, so that its sender has to change it: its values are not finite.
  bool of_input = false;
};

using TaskResult = std::variant<Classification, Detections, Segmentation, Disparity, Actions, Restoration,
                                Embedding, Failure>;

}  // namespace saccade::models
