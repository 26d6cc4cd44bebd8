// Writes a model's answers to a file, for Python scripts that compare them.
#pragma once

#include <string>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

// Writes a safetensors file, all F32, with for item I
//   I.logits [classes]; or
//   I.boxes [K, 4], I.scores [K], I.labels [K], I.masks [K, side, side], and if `paste` also
//   I.pasted [K, h, w], the masks' probabilities in the picture as sent; or
//   I.label_map [h, w], I.areas [classes]; or
//   I.disparity [h, w]; or
//   I.segments [K, 2], I.scores [K], I.labels [K]; or
//   I.restored [d, h, w]; or
//   I.embedding [values].
// Throws std::runtime_error if an answer is a Failure, or if the file cannot be written.
void WriteAnswers(const std::vector<TaskResult>& answers, bool paste, const std::string& path);

}  // namespace saccade::models
