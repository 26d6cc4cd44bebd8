// Converts detections to the formats of other tools.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "client/cli/output/outcome.h"

namespace saccade::client {

// REQUIRES, for both functions: every answer that is OK holds Detections. Failed pictures are left out.

// COCO's results: an array of all detections. image_id is the number in the file's name (139 for
// 000000000139.jpg) if every picture has a distinct one, else the index of the picture, from 0.
nlohmann::ordered_json CocoResults(const std::vector<Outcome>& outcomes);

// The input of supervision.Detections.from_inference: one object if there is one picture, else an array of
// them. Boxes are given by their centres; a mask is the outline of its largest part.
nlohmann::ordered_json RoboflowPredictions(const std::vector<Outcome>& outcomes);

}  // namespace saccade::client
