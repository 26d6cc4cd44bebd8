// Formats the results of all pictures as one JSON document.
#pragma once

#include <string>
#include <vector>

#include "client/cli/output/format.h"
#include "client/cli/output/outcome.h"

namespace saccade::client {

// Returns the document, which ends in a newline. kJson contains everything, including errors; kCoco and
// kRoboflow contain only the detections.
// REQUIRES: all answers are Detections if the format is kCoco or kRoboflow.
std::string Document(Format format, const std::string& model, const std::vector<Outcome>& outcomes);

// Returns one result on one line: its kJson object, with the model's name.
std::string DocumentLine(const std::string& model, const Outcome& outcome);

}  // namespace saccade::client
