#include "models/described/heads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "models/api/error.h"
#include "models/described/detection_heads.h"
#include "models/described/probability.h"
#include "models/described/prototype_masks.h"
#include "models/tasks/finite.h"
#include "models/tasks/segment.h"
#include "models/tasks/stereo.h"

namespace saccade::models {
namespace {

// The largest class that a label map can hold; 255 stands for none.
constexpr int64_t kMaxMapClasses = 255;
constexpr int64_t kMaxPrototypes = 1024;
// The memory of all masks of a picture, if each box covers the whole of it.
constexpr int64_t kMaxMaskBytes = int64_t{1} << 30;

std::string ShapeOf(const at::Tensor& tensor) {
  std::string text = "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.size(i));
  return text + "]";
}

class ShapeCheck {
 public:
  ShapeCheck(const PictureProgram& program, const PictureOutputs& outputs)
      : program_(program), outputs_(outputs) {}

  [[noreturn]] void Refuse(size_t output, const std::string& wanted) const {
    throw LoadError("output '" + program_.outputs[output].name + "' has the shape " +
                    ShapeOf(outputs_[output]) + " for one picture, but its role '" +
                    NameOf(program_.roles[output]) + "' wants " + wanted);
  }

  void Require(bool fits, size_t output, const std::string& wanted) const {
    if (!fits) Refuse(output, wanted);
  }

 private:
  const PictureProgram& program_;
  const PictureOutputs& outputs_;
};

int64_t SetClasses(const PictureProgram& program, const PictureOutputs& outputs, const ShapeCheck& check) {
  const int64_t least = program.head.no_object ? 2 : 1;
  check.Require(outputs[0].dim() == 2 && outputs[0].size(1) >= least, 0,
                program.head.no_object ? "[queries,classes + 1]" : "[queries,classes]");
  check.Require(outputs[1].dim() == 2 && outputs[1].size(0) == outputs[0].size(0) && outputs[1].size(1) == 4,
                1, "[" + std::to_string(outputs[0].size(0)) + ",4]");
  return outputs[0].size(1) - (program.head.no_object ? 1 : 0);
}

void CheckMasks(const at::Tensor& masks, int64_t boxes, const ShapeCheck& check) {
  const bool single = masks.dim() == 3 || (masks.dim() == 4 && masks.size(1) == 1);
  check.Require(single && masks.size(0) == boxes && masks.size(-1) == masks.size(-2) && masks.size(-1) >= 1 &&
                    masks.size(-1) <= kMaxMaskSide,
                3,
                "[" + std::to_string(boxes) + ",side,side] or [" + std::to_string(boxes) +
                    ",1,side,side] with a side of 1 to " + std::to_string(kMaxMaskSide));
}

// Returns the number of prototypes.
int64_t CheckPrototypes(const PictureProgram& program, size_t output, const at::Tensor& prototypes,
                        const ShapeCheck& check) {
  const Head& head = program.head;
  const std::string count = "1 to " + std::to_string(kMaxPrototypes) + " prototypes";
  check.Require(
      prototypes.dim() == 3 && prototypes.numel() >= 1 && CountPrototypes(head, prototypes) <= kMaxPrototypes,
      output,
      head.prototypes_last ? "[height,width," + count + "]; head.prototype_layout \"chw\" has them first"
                           : "[" + count + ",height,width]; head.prototype_layout \"hwc\" has them last");
  const int64_t cells = prototypes.numel() / CountPrototypes(head, prototypes);
  const auto value = static_cast<int64_t>(sizeof(float));
  check.Require(cells <= kMaxMaskBytes / value / head.max_detections, output,
                "at most " + std::to_string(kMaxMaskBytes / value / head.max_detections) +
                    " positions, so that the masks of head.max_detections " +
                    std::to_string(head.max_detections) + " take at most 1 GiB");
  return CountPrototypes(head, prototypes);
}

int64_t BoxClasses(const PictureProgram& program, const PictureOutputs& outputs, const ShapeCheck& check) {
  check.Require(outputs[0].dim() == 2 && outputs[0].size(1) == 4, 0, "[boxes,4]");
  const int64_t boxes = outputs[0].size(0);
  const std::string rows = "[" + std::to_string(boxes);
  if (const std::optional<size_t> prototypes = OutputOf(program, Role::kPrototypes)) {
    const int64_t count = CheckPrototypes(program, *prototypes, outputs[*prototypes], check);
    const size_t at = OutputOf(program, Role::kCoefficients).value();
    check.Require(outputs[at].dim() == 2 && outputs[at].size(0) == boxes && outputs[at].size(1) == count, at,
                  rows + "," + std::to_string(count) + "], a coefficient for each prototype");
  }
  if (OutputOf(program, Role::kLabels)) {
    check.Require(outputs[1].dim() == 1 && outputs[1].size(0) == boxes, 1, rows + "]");
    check.Require(outputs[2].dim() == 1 && outputs[2].size(0) == boxes, 2, rows + "]");
    if (OutputOf(program, Role::kMasks)) CheckMasks(outputs[3], boxes, check);
    return -1;
  }
  const int64_t least = program.head.background ? 2 : 1;
  check.Require(outputs[1].dim() == 2 && outputs[1].size(0) == boxes && outputs[1].size(1) >= least, 1,
                rows + ",classes]");
  return outputs[1].size(1);
}

// The columns of a grid besides its classes.
int64_t ColumnsAround(const Head& head, int64_t coefficients) {
  return (head.objectness ? 5 : 4) + 3 * head.keypoints + coefficients;
}

int64_t GridClasses(const PictureProgram& program, const PictureOutputs& outputs, Size input,
                    const ShapeCheck& check) {
  const Head& head = program.head;
  const at::Tensor& grid = outputs[0];
  const std::optional<size_t> prototypes = OutputOf(program, Role::kPrototypes);
  const int64_t coefficients =
      prototypes ? CheckPrototypes(program, *prototypes, outputs[*prototypes], check) : 0;
  const int64_t around = ColumnsAround(head, coefficients);
  const std::string columns = std::to_string(around) + " + classes";
  check.Require(grid.dim() == 2, 0,
                head.channels_first ? "[" + columns + ",rows]" : "[rows," + columns + "]");
  const int64_t classes = grid.size(head.channels_first ? 0 : 1) - around;
  const int64_t rows = grid.size(head.channels_first ? 1 : 0);
  check.Require(classes >= 1, 0,
                columns + " columns, in " + (head.channels_first ? "the first" : "the second") +
                    " dimension; head.order says which one they are in");
  const int64_t expected = GridRows(head.strides, input);
  check.Require(head.strides.empty() || rows == expected, 0,
                std::to_string(expected) + " rows, one for each cell of head.strides");
  return classes;
}

LogitFunction FunctionOf(ScoreActivation activation) {
  switch (activation) {
    case ScoreActivation::kSoftmax:
      return LogitFunction::kSoftmax;
    case ScoreActivation::kSigmoid:
      return LogitFunction::kSigmoid;
    case ScoreActivation::kNone:
      break;
  }
  return LogitFunction::kExp;
}

// What the shape of a grid tells against head.order: a network has more boxes than classes. Where labels or
// head.strides say how many there are, a wrong order is an error already.
std::string RemarkOnOrder(const PictureProgram& program, const PictureOutputs& outputs) {
  const Head& head = program.head;
  const at::Tensor& grid = outputs[0];
  const std::optional<size_t> prototypes = OutputOf(program, Role::kPrototypes);
  const int64_t around = ColumnsAround(head, prototypes ? CountPrototypes(head, outputs[*prototypes]) : 0);
  const int64_t columns = grid.size(head.channels_first ? 0 : 1);
  const int64_t rows = grid.size(head.channels_first ? 1 : 0);
  if (!head.strides.empty() || columns <= rows || rows <= around) return "";
  const auto reads = [&](int64_t as_columns, int64_t as_rows) {
    return std::to_string(as_columns - around) + " classes of " + std::to_string(as_rows) + " boxes";
  };
  return "output '" + program.outputs[0].name + "' has the shape " + ShapeOf(grid) + ", which head.order \"" +
         (head.channels_first ? "columns" : "rows") + "\" makes " + reads(columns, rows) + "; if it has " +
         reads(rows, columns) + ", set head.order to \"" + (head.channels_first ? "rows" : "columns") +
         "\", otherwise add labels";
}

TaskResult ReadClasses(const PictureProgram& program, const at::Tensor& output) {
  const at::Tensor flat = output.reshape({-1});
  const auto* values = flat.const_data_ptr<float>();
  Classification result{.logits = {values, values + flat.numel()},
                        .function = FunctionOf(program.head.activation)};
  if (!AllFinite(result.logits)) return NotFiniteOutput("the program", "a logit");
  if (result.function != LogitFunction::kExp) return result;
  // The logarithms of the program's probabilities, which stay as they are and need not sum up to 1. A client
  // that computes the softmax of the logits gets them back too, if they do.
  constexpr float kLeast = 1e-30F;
  for (float& value : result.logits) {
    if (!IsProbability(value)) return NoProbability("logits", value);
    value = std::log(std::clamp(value, kLeast, 1.0F));
  }
  return result;
}

TaskResult ReadDepth(const PictureProgram& program, const at::Tensor& output, const Placement& placement) {
  at::Tensor depth = output.dim() == 3 ? output[0] : output;
  if (!AllFinite(depth)) return NotFiniteOutput("the program", "a depth");
  const Size sent = placement.sent;
  depth = DepthAsSent(depth, placement, program.head.filter);
  const auto* values = depth.const_data_ptr<float>();
  return Disparity{
      .height = sent.height, .width = sent.width, .values = {values, values + sent.height * sent.width}};
}

TaskResult ReadEmbedding(const PictureProgram& program, const at::Tensor& output) {
  const at::Tensor flat = output.reshape({-1});
  const auto* values = flat.const_data_ptr<float>();
  Embedding result{.values = {values, values + flat.numel()}};
  if (!AllFinite(result.values)) return NotFiniteOutput("the program", "an embedding");
  if (!program.head.unit_length) return result;
  double squares = 0;
  for (const float value : result.values) squares += static_cast<double>(value) * value;
  const auto length = static_cast<float>(std::sqrt(squares));
  if (length > 0) {
    for (float& value : result.values) value /= length;
  }
  return result;
}

}  // namespace

int64_t ClassesOf(const PictureProgram& program, const PictureOutputs& outputs, Size input) {
  const ShapeCheck check(program, outputs);
  const at::Tensor& first = outputs.at(0);
  switch (program.head.kind) {
    case HeadKind::kClasses:
      check.Require(first.dim() >= 1 && first.numel() == first.size(0) && first.numel() >= 1, 0, "[classes]");
      return first.numel();
    case HeadKind::kSets:
      return SetClasses(program, outputs, check);
    case HeadKind::kBoxes:
      return BoxClasses(program, outputs, check);
    case HeadKind::kGrid:
      return GridClasses(program, outputs, input, check);
    case HeadKind::kSemantic:
      check.Require(first.dim() == 3 && first.size(0) >= 1 && first.size(0) <= kMaxMapClasses &&
                        first.size(1) >= 1 && first.size(2) >= 1,
                    0, "[classes,height,width] with 1 to 255 classes");
      return first.size(0);
    case HeadKind::kDepth: {
      const bool flat = first.dim() == 2 || (first.dim() == 3 && first.size(0) == 1);
      check.Require(flat && first.size(-1) >= 1 && first.size(-2) >= 1, 0,
                    "[height,width] or [1,height,width]");
      return 0;
    }
    case HeadKind::kEmbedding:
      break;
  }
  constexpr int64_t kMaxValues = int64_t{1} << 20;
  check.Require(first.numel() >= 1 && first.numel() <= kMaxValues, 0, "1 to 1048576 values");
  return 0;
}

std::string RemarkOn(const PictureProgram& program, const PictureOutputs& outputs, bool labelled) {
  if (program.head.kind == HeadKind::kGrid && !labelled) return RemarkOnOrder(program, outputs);
  if (program.head.kind != HeadKind::kClasses || program.head.activation != ScoreActivation::kSoftmax)
    return "";
  // In float16, a thousand probabilities sum up to 1 within less.
  constexpr double kRounding = 0.01;
  const at::Tensor flat = outputs[0].reshape({-1});
  const std::span values(flat.const_data_ptr<float>(), static_cast<size_t>(flat.numel()));
  const bool positive = std::all_of(values.begin(), values.end(), [](float value) { return value >= 0; });
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (values.size() < 2 || !positive || !(std::abs(sum - 1) <= kRounding)) return "";
  return "output '" + program.outputs[0].name +
         "' sums up to 1, as probabilities do, of which head.activation \"softmax\" makes nearly equal ones; "
         "set it to \"none\" if the network ends in a softmax";
}

TaskResult ReadHead(const PictureProgram& program, const PictureOutputs& outputs, int64_t classes,
                    const Placement& placement) {
  switch (program.head.kind) {
    case HeadKind::kClasses:
      return ReadClasses(program, outputs[0]);
    case HeadKind::kSemantic:
      if (!AllFinite(outputs[0])) return NotFiniteOutput("the program", "a score");
      return LabelMapOfGrid(outputs[0].permute({1, 2, 0}).contiguous(), placement);
    case HeadKind::kDepth:
      return ReadDepth(program, outputs[0], placement);
    case HeadKind::kEmbedding:
      return ReadEmbedding(program, outputs[0]);
    case HeadKind::kSets:
    case HeadKind::kBoxes:
    case HeadKind::kGrid:
      break;
  }
  return ReadDetections(program, outputs, classes, placement);
}

}  // namespace saccade::models
