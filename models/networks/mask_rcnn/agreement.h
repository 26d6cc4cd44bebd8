// Compares the detections that two computations of one picture have found.
#pragma once

#include "models/tasks/result.h"

namespace saccade::models {

// Returns the share of the detections of both, from 0 to 1, that have a partner among the other's: of the
// same label, with a score that differs by at most `tolerance`, a box that overlaps it by half or more, and a
// mask that differs by at most `tolerance` on average. 1 if neither has any. Failures agree with equal ones
// alone.
double Agreement(const TaskResult& a, const TaskResult& b, double tolerance);

}  // namespace saccade::models
