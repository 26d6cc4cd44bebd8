// The answers to all pictures as one JSON document, in the form that was asked for.
#pragma once

#include <string>
#include <vector>

#include "client/cli/options.h"
#include "client/cli/outcome.h"

namespace saccade::client {

// Ends in a newline. kJson has everything, errors too; kCoco and kRoboflow have what was found alone.
// REQUIRES: for those two, that all answers are Detections.
std::string Document(Format format, const std::string& model, const std::vector<Outcome>& outcomes);

// One answer as a line of its own: what `kJson` has of it, and the model.
std::string DocumentLine(const std::string& model, const Outcome& outcome);

}  // namespace saccade::client
