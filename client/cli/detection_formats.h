// Detections as other people's tools read them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "client/cli/outcome.h"

namespace saccade::client {

// REQUIRES, of both: every answer that is there is Detections. Pictures without an answer are left out.

// COCO's results: an array of all detections. image_id is the number that a picture's file is called after
// (000000000139.jpg is 139) if every picture has one of its own, and its place among the pictures, from 0,
// otherwise.
nlohmann::ordered_json CocoResults(const std::vector<Outcome>& outcomes);

// As supervision.Detections.from_inference reads it: one object if there is one picture, or else an array of
// them. Boxes have centres; a mask is the outline of its largest part.
nlohmann::ordered_json RoboflowPredictions(const std::vector<Outcome>& outcomes);

}  // namespace saccade::client
