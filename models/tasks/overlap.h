// How much of two findings overlaps: the intersection over union of boxes, and of segments of time.
#pragma once

#include "models/tasks/result.h"

namespace saccade::models {

// 0 if either has no extent. Masks are not looked at.
double BoxIou(const Detection& a, const Detection& b);
double SegmentIou(const Action& a, const Action& b);

}  // namespace saccade::models
