// How far two answers to the same request are apart: bit for bit, and by the measure of their task. The
// measures are those of `saccade replay` (docs/capture.md).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/tasks/result.h"
#include "server/core/tensor.h"

namespace saccade::server {

// The part of a response that is compared: results, or a program's tensors.
struct ComparedAnswer {
  std::vector<models::TaskResult> results;
  std::vector<Tensor> outputs;
  // Whether a models::Disparity is the depth of one picture, which has a unit of the model's own.
  bool is_depth = false;
};

struct AnswerComparison {
  // "classification", "detection" and so on; "tensors" for outputs of programs.
  std::string_view task;
  // The largest difference of answers that agree, without a tolerance of the model's own.
  double tolerance = 0;
  // Bit for bit.
  bool equal = true;
  // The largest difference of an item, by the task's measure. 0 if the measure sees none; infinite if the
  // answers cannot be compared, such as maps of different sizes.
  double difference = 0;
  // Classifications: whether the best class of each item is the same. True for other tasks.
  bool same_best = true;
};

AnswerComparison CompareAnswers(const ComparedAnswer& one, const ComparedAnswer& other);

// Whether the answers count as the same: the difference is at most `tolerance`. Without a tolerance,
// classifications agree if their best classes do, and other tasks by the tolerance of `saccade replay`.
bool Agrees(const AnswerComparison& comparison, std::optional<double> tolerance);

}  // namespace saccade::server
