// Turns one picture's outputs of a program into the task's result.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/described/picture_program.h"
#include "models/tasks/result.h"

namespace saccade::models {

// One picture's outputs in the order of PictureProgram::roles, without the batch: float32, labels int64, all
// contiguous.
using PictureOutputs = std::vector<at::Tensor>;

// Returns the number of classes that the outputs have: 0 if the head has none, -1 if the outputs do not tell
// (boxes with a label each). Throws a LoadError that names the output, its shape, and the shape that the head
// wants. `input` is the size of the network's input that the outputs are for.
int64_t ClassesOf(const PictureProgram& program, const PictureOutputs& outputs, Size input);

// Returns what the outputs for a picture tell against the description, for people; empty if nothing does.
// `labelled` says whether the classes have labels, with whose number theirs is compared. REQUIRES:
// ClassesOf() did not throw.
std::string RemarkOn(const PictureProgram& program, const PictureOutputs& outputs, bool labelled);

// REQUIRES: ClassesOf() did not throw for these shapes. `classes` is the model's number of classes. Numbers
// that are not finite, and labels beyond the classes, give a Failure.
TaskResult ReadHead(const PictureProgram& program, const PictureOutputs& outputs, int64_t classes,
                    const Placement& placement);

}  // namespace saccade::models
