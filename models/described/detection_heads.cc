#include "models/described/detection_heads.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "models/described/probability.h"
#include "models/described/prototype_masks.h"
#include "models/described/to_sent.h"
#include "models/tasks/choose_detections.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

Detection BoxOf(const float* numbers, BoxFormat format, float score, int64_t label) {
  const float a = numbers[0];
  const float b = numbers[1];
  const float c = numbers[2];
  const float d = numbers[3];
  Detection box;
  box.score = score;
  box.label = label;
  switch (format) {
    case BoxFormat::kCorners:
      std::tie(box.x_min, box.y_min, box.x_max, box.y_max) = std::tuple(a, b, c, d);
      break;
    case BoxFormat::kCentre:
      std::tie(box.x_min, box.y_min, box.x_max, box.y_max) =
          std::tuple(a - 0.5F * c, b - 0.5F * d, a + 0.5F * c, b + 0.5F * d);
      break;
    case BoxFormat::kCorner:
      std::tie(box.x_min, box.y_min, box.x_max, box.y_max) = std::tuple(a, b, a + c, b + d);
      break;
  }
  return box;
}

at::Tensor Activated(const at::Tensor& scores, ScoreActivation activation) {
  if (activation == ScoreActivation::kSoftmax) return at::softmax(scores, -1).contiguous();
  if (activation == ScoreActivation::kSigmoid) return at::sigmoid(scores).contiguous();
  return scores;
}

struct Best {
  int64_t label = -1;
  float score = 0;
};

// The best class among [first, end); the first of equal ones.
Best BestOf(const float* scores, int64_t first, int64_t end) {
  const float* best = std::max_element(scores + first, scores + end);
  return {best - scores, *best};
}

// DETR's: the best class of each query. Without a class for no object, every class of a query is a candidate.
std::vector<Detection> SetCandidates(const Head& head, const PictureOutputs& outputs) {
  const at::Tensor scores = Activated(outputs[0], head.activation);
  const int64_t columns = scores.size(1);
  const int64_t classes = columns - (head.no_object ? 1 : 0);
  const auto* values = scores.const_data_ptr<float>();
  const auto* boxes = outputs[1].const_data_ptr<float>();
  std::vector<Detection> found;
  for (int64_t query = 0; query < scores.size(0); ++query) {
    const float* row = values + query * columns;
    const float* box = boxes + 4 * query;
    if (head.activation == ScoreActivation::kSoftmax) {
      const Best best = BestOf(row, 0, classes);
      if (best.score > head.score_threshold) found.push_back(BoxOf(box, head.format, best.score, best.label));
      continue;
    }
    for (int64_t label = 0; label < classes; ++label) {
      if (row[label] > head.score_threshold) found.push_back(BoxOf(box, head.format, row[label], label));
    }
  }
  return found;
}

// The masks or coefficients of boxes, a row for each; `values` is null if there are none.
struct MaskRows {
  const float* values = nullptr;
  int64_t size = 0;

  // Until a detection's mask is made of prototypes, it holds the coefficients.
  void Give(int64_t row, Detection& one) const {
    if (values != nullptr) one.mask.assign(values + row * size, values + (row + 1) * size);
  }
};

MaskRows MaskRowsOf(const PictureProgram& program, const PictureOutputs& outputs) {
  std::optional<size_t> rows = OutputOf(program, Role::kMasks);
  if (!rows) rows = OutputOf(program, Role::kCoefficients);
  if (!rows || outputs[*rows].size(0) == 0) return {};
  const at::Tensor& output = outputs[*rows];
  return {output.const_data_ptr<float>(), output.numel() / output.size(0)};
}

// A score and a label for each box. Rows with a negative label fill up the tensor and are skipped.
std::vector<Detection> LabelledCandidates(const Head& head, const PictureOutputs& outputs,
                                          const MaskRows& masks) {
  const auto* boxes = outputs[0].const_data_ptr<float>();
  const auto* scores = outputs[1].const_data_ptr<float>();
  const auto* labels = outputs[2].const_data_ptr<int64_t>();
  std::vector<Detection> found;
  for (int64_t i = 0; i < outputs[0].size(0); ++i) {
    if (labels[i] < 0 || !(scores[i] > head.score_threshold)) continue;
    found.push_back(BoxOf(boxes + 4 * i, head.format, scores[i], labels[i]));
    masks.Give(i, found.back());
  }
  return found;
}

// A score for each class of each box: every pair is a candidate, as in torchvision's detectors.
std::vector<Detection> ScoredCandidates(const Head& head, const PictureOutputs& outputs,
                                        const MaskRows& masks) {
  const at::Tensor scores = Activated(outputs[1], head.activation);
  const auto* boxes = outputs[0].const_data_ptr<float>();
  const auto* values = scores.const_data_ptr<float>();
  const int64_t classes = scores.size(1);
  std::vector<Detection> found;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    for (int64_t label = head.background ? 1 : 0; label < classes; ++label) {
      const float score = values[i * classes + label];
      if (!(score > head.score_threshold)) continue;
      found.push_back(BoxOf(boxes + 4 * i, head.format, score, label));
      masks.Give(i, found.back());
    }
  }
  return found;
}

// Undoes YOLOX's coding: boxes as offsets from their cell, and logarithms of sides, in strides. Returns false
// if a side is not finite.
bool DecodeCells(const std::vector<int64_t>& strides, Size input, at::Tensor& rows) {
  auto* row = rows.mutable_data_ptr<float>();
  float largest = 0;
  for (const int64_t stride : strides) {
    const auto unit = static_cast<float>(stride);
    for (int64_t y = 0; y < input.height / stride; ++y) {
      for (int64_t x = 0; x < input.width / stride; ++x, row += rows.size(1)) {
        row[0] = (row[0] + static_cast<float>(x)) * unit;
        row[1] = (row[1] + static_cast<float>(y)) * unit;
        row[2] = std::exp(row[2]) * unit;
        row[3] = std::exp(row[3]) * unit;
        largest = std::max({largest, row[2], row[3]});
      }
    }
  }
  return std::isfinite(largest);
}

// `coefficients` is the number of them in each row. Returns nullopt if a box is not finite.
std::optional<std::vector<Detection>> GridCandidates(const Head& head, const PictureOutputs& outputs,
                                                     Size input, int64_t coefficients) {
  at::Tensor rows = head.channels_first ? outputs[0].t().contiguous() : outputs[0];
  const int64_t columns = rows.size(1);
  const int64_t first = head.objectness ? 5 : 4;
  const int64_t points = columns - 3 * head.keypoints - coefficients;
  if (!head.strides.empty()) {
    rows = rows.clone();
    if (!DecodeCells(head.strides, input, rows)) return std::nullopt;
  }
  const bool sigmoid = head.activation == ScoreActivation::kSigmoid;
  const auto probability = [sigmoid](float value) { return sigmoid ? 1 / (1 + std::exp(-value)) : value; };
  std::vector<Detection> found;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const float* row = rows.const_data_ptr<float>() + i * columns;
    Best best = BestOf(row, first, points);
    best.score = probability(best.score) * (head.objectness ? probability(row[4]) : 1);
    if (!(best.score > head.score_threshold)) continue;
    Detection one = BoxOf(row, head.format, best.score, best.label - first);
    const float* rest = row + columns - coefficients;
    one.mask.assign(rest, rest + coefficients);
    for (const float* point = row + points; point < rest; point += 3)
      one.keypoints.push_back({point[0], point[1], probability(point[2])});
    found.push_back(std::move(one));
  }
  return found;
}

// Returns nullopt if a box is not finite.
std::optional<std::vector<Detection>> Candidates(const PictureProgram& program, const PictureOutputs& outputs,
                                                 Size input) {
  const Head& head = program.head;
  if (head.kind == HeadKind::kSets) return SetCandidates(head, outputs);
  if (head.kind == HeadKind::kGrid) {
    const std::optional<size_t> prototypes = OutputOf(program, Role::kPrototypes);
    return GridCandidates(head, outputs, input, prototypes ? CountPrototypes(head, outputs[*prototypes]) : 0);
  }
  const MaskRows masks = MaskRowsOf(program, outputs);
  return OutputOf(program, Role::kLabels) ? LabelledCandidates(head, outputs, masks)
                                          : ScoredCandidates(head, outputs, masks);
}

// The side of the grid over each box on which masks lie, or to which they are interpolated; 0 without masks.
int64_t MaskSide(const PictureProgram& program, const PictureOutputs& outputs) {
  if (OutputOf(program, Role::kPrototypes)) return program.head.mask_side;
  const std::optional<size_t> masks = OutputOf(program, Role::kMasks);
  return masks ? outputs[*masks].size(-1) : 0;
}

}  // namespace

int64_t GridRows(const std::vector<int64_t>& strides, Size input) {
  int64_t rows = 0;
  for (const int64_t stride : strides) rows += (input.height / stride) * (input.width / stride);
  return rows;
}

TaskResult ReadDetections(const PictureProgram& program, const PictureOutputs& outputs, int64_t classes,
                          const Placement& placement) {
  const Head& head = program.head;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (program.roles[i] != Role::kLabels && !AllFinite(outputs[i]))
      return NotFiniteOutput("the program", "a value of '" + program.outputs[i].name + "'");
  }
  const ChoiceRules rules{.iou = head.nms,
                          .across_classes = head.across_classes,
                          .max_candidates = head.max_candidates,
                          .max_detections = head.max_detections};
  std::optional<std::vector<Detection>> candidates = Candidates(program, outputs, placement.bucket);
  if (!candidates) return NotFiniteOutput("the program", "a side of a box");
  Detections result{.items = ChooseDetections(*std::move(candidates), rules),
                    .mask_side = MaskSide(program, outputs),
                    .height = placement.sent.height,
                    .width = placement.sent.width};
  // Best first.
  const bool has_probabilities = result.items.empty() || IsProbability(result.items.front().score);
  if (!has_probabilities) return NoProbability("scores", result.items.front().score);
  const ToSent to_sent(program, placement);
  for (Detection& one : result.items) {
    if (one.label >= classes) {
      return Failure{"the program found class " + std::to_string(one.label) +
                     ", but the model has classes 0 to " + std::to_string(classes - 1)};
    }
    to_sent.Move(one);
  }
  const std::optional<size_t> prototypes = OutputOf(program, Role::kPrototypes);
  if (prototypes && !MakeMasks(program.head, outputs[*prototypes], placement, to_sent, result.items))
    return NotFiniteOutput("the program", "a mask");
  return result;
}

}  // namespace saccade::models
