// Runs a model on tensors in files, for the parity tests:
//   saccade_run_model ARCHITECTURE WEIGHTS INPUT OUTPUT [--paste] [OPTION=VALUE]...
// INPUT is a batch file (models/tools/batch_file.h). OUTPUT becomes a safetensors file, all F32, with for
// item I
//   I.logits [classes]; or
//   I.boxes [K, 4], I.scores [K], I.labels [K], I.masks [K, side, side], and with --paste also
//   I.pasted [K, h, w], the masks' probabilities in the picture as sent; or
//   I.label_map [h, w], I.areas [classes]; or
//   I.disparity [h, w]; or
//   I.segments [K, 2], I.scores [K], I.labels [K]; or
//   I.restored [d, h, w].
// The model's notes are printed to stderr.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/tasks/mask.h"
#include "models/testing/random_weights.h"
#include "models/tools/batch_file.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {
namespace {

struct Arguments {
  std::string architecture, weights, input, output;
  bool paste = false;
  Options options = {};
};

Arguments ParseArguments(int argc, char** argv) {
  if (argc < 5)
    throw std::runtime_error("expected ARCHITECTURE WEIGHTS INPUT OUTPUT [--paste] [OPTION=VALUE]...");
  Arguments arguments = {.architecture = argv[1], .weights = argv[2], .input = argv[3], .output = argv[4]};
  for (int i = 5; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    if (option == "--paste") {
      arguments.paste = true;
    } else if (equals != std::string::npos) {
      arguments.options[option.substr(0, equals)] = option.substr(equals + 1);
    } else {
      throw std::runtime_error(option + ": expected --paste or OPTION=VALUE");
    }
  }
  return arguments;
}

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

void Run(const Arguments& arguments) {
  const auto model = Load(arguments.architecture, arguments.options, arguments.weights);
  for (const std::string& note : model->description().notes) std::fprintf(stderr, "%s\n", note.c_str());
  const std::vector<TaskResult> results = model->Run(ReadBatch(arguments.input));
  TensorMap tensors;
  for (size_t i = 0; i < results.size(); ++i) Write(results[i], i, arguments.paste, tensors);
  testing::SaveSafetensors(tensors, arguments.output);
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  try {
    saccade::models::Run(saccade::models::ParseArguments(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_run_model: %s\n", error.what());
    return 1;
  }
}
