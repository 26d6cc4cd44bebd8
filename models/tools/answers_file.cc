#include "models/tools/answers_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <type_traits>
#include <variant>

#include "models/tasks/mask.h"
#include "models/testing/random_weights.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {
namespace {

template <typename T>
at::Tensor Floats(const std::vector<T>& values, const std::vector<int64_t>& shape) {
  const at::Tensor tensor = at::empty(shape, at::kFloat);
  if (static_cast<int64_t>(values.size()) != tensor.numel())
    throw std::runtime_error("the model gave " + std::to_string(values.size()) + " values for a tensor of " +
                             ShapeText(shape));
  auto* to = tensor.data_ptr<float>();
  for (const T value : values) *to++ = static_cast<float>(value);
  return tensor;
}

at::Tensor Pasted(const Detections& detections) {
  const at::Tensor pasted = at::zeros(
      {static_cast<int64_t>(detections.items.size()), detections.height, detections.width}, at::kFloat);
  for (size_t i = 0; i < detections.items.size(); ++i) {
    const MaskRegion region =
        PasteMask(detections.items[i], detections.mask_side, detections.height, detections.width);
    if (region.values.empty()) continue;
    pasted[static_cast<int64_t>(i)]
        .narrow(0, region.y, region.height)
        .narrow(1, region.x, region.width)
        .copy_(Floats(region.values, {region.height, region.width}));
  }
  return pasted;
}

// `picture` is the prefix of its tensors' names.
void Write(const Detections& detections, const std::string& picture, bool paste, TensorMap& tensors) {
  std::vector<float> boxes, scores, labels, masks;
  for (const Detection& detection : detections.items) {
    boxes.insert(boxes.end(), {detection.x_min, detection.y_min, detection.x_max, detection.y_max});
    scores.push_back(detection.score);
    labels.push_back(static_cast<float>(detection.label));
    masks.insert(masks.end(), detection.mask.begin(), detection.mask.end());
  }
  const auto count = static_cast<int64_t>(detections.items.size());
  tensors[picture + "boxes"] = Floats(boxes, {count, 4});
  tensors[picture + "scores"] = Floats(scores, {count});
  tensors[picture + "labels"] = Floats(labels, {count});
  tensors[picture + "masks"] = Floats(masks, {count, detections.mask_side, detections.mask_side});
  if (paste) tensors[picture + "pasted"] = Pasted(detections);
}

void Write(const Actions& actions, const std::string& clip, TensorMap& tensors) {
  std::vector<float> segments, scores, labels;
  for (const Action& action : actions.items) {
    segments.insert(segments.end(), {action.start, action.end});
    scores.push_back(action.score);
    labels.push_back(static_cast<float>(action.label));
  }
  const auto count = static_cast<int64_t>(actions.items.size());
  tensors[clip + "segments"] = Floats(segments, {count, 2});
  tensors[clip + "scores"] = Floats(scores, {count});
  tensors[clip + "labels"] = Floats(labels, {count});
}

void Write(const TaskResult& result, size_t index, bool paste, TensorMap& tensors) {
  const std::string picture = std::to_string(index) + ".";
  std::visit(
      [&](const auto& answer) {
        using Answer = std::decay_t<decltype(answer)>;
        if constexpr (std::is_same_v<Answer, Failure>) {
          throw std::runtime_error("picture " + std::to_string(index) + ": " + answer.message);
        } else if constexpr (std::is_same_v<Answer, Classification>) {
          tensors[picture + "logits"] = Floats(answer.logits, {static_cast<int64_t>(answer.logits.size())});
        } else if constexpr (std::is_same_v<Answer, Detections>) {
          Write(answer, picture, paste, tensors);
        } else if constexpr (std::is_same_v<Answer, Segmentation>) {
          tensors[picture + "label_map"] = Floats(answer.labels, {answer.height, answer.width});
          tensors[picture + "areas"] = Floats(answer.areas, {static_cast<int64_t>(answer.areas.size())});
        } else if constexpr (std::is_same_v<Answer, Actions>) {
          Write(answer, picture, tensors);
        } else if constexpr (std::is_same_v<Answer, Restoration>) {
          tensors[picture + "restored"] = Floats(answer.values, {answer.depth, answer.height, answer.width});
        } else if constexpr (std::is_same_v<Answer, Embedding>) {
          tensors[picture + "embedding"] =
              Floats(answer.values, {static_cast<int64_t>(answer.values.size())});
        } else {
          tensors[picture + "disparity"] = Floats(answer.values, {answer.height, answer.width});
        }
      },
      result);
}

}  // namespace

void WriteAnswers(const std::vector<TaskResult>& answers, bool paste, const std::string& path) {
  TensorMap tensors;
  for (size_t i = 0; i < answers.size(); ++i) Write(answers[i], i, paste, tensors);
  testing::SaveSafetensors(tensors, path);
}

}  // namespace saccade::models
