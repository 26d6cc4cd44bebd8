// Measures how much two results for the same item differ, by a measure of the task. Shows what a lower
// precision costs, without knowing the right answer.
#pragma once

#include "models/tasks/result.h"

namespace saccade::models {

// Returns 0 for results that mean the same, and at most 1:
//   classification  total variation distance of the classes' probabilities
//   detection       share of the certain findings (a score of 0.5 or more) that the other result lacks. It
//   and actions     has one if the class is the same, the score at least 0.25, and the IoU at least 0.5
//                   (with masks, the lower one of both IoUs)
//   segmentation    share of pixels with another class
//   stereo          share of pixels whose disparity differs by more than 1
//   depth           as stereo
//   embedding       half of 1 minus the cosine of both
//   restoration     RMS of the difference, relative to the standard deviation of `expected`
// Between results without a certain finding it is 0, which shows nothing: see HasCertainFinding().
// 1 if one of them is a Failure or they are of different tasks or sizes; 0 if both are Failures.
double Disagreement(const TaskResult& expected, const TaskResult& got);

// Whether a result that consists of findings has one with a score of 0.5 or more. True for other results.
bool HasCertainFinding(const TaskResult& result);

}  // namespace saccade::models
