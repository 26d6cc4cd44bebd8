// The heads that give detections.
#pragma once

#include "models/described/heads.h"

namespace saccade::models {

// As ReadHead(), for kSets, kBoxes and kGrid.
TaskResult ReadDetections(const PictureProgram& program, const PictureOutputs& outputs, int64_t classes,
                          const Placement& placement);

// Number of rows that a grid with cells of these strides has.
int64_t GridRows(const std::vector<int64_t>& strides, Size input);

}  // namespace saccade::models
