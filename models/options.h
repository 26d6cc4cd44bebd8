// A network's options as they stand in the model repository's configuration: names and values as text.
#pragma once

#include <map>
#include <string>

namespace saccade::models {

// Each architecture knows its own names and values; anything else is a LoadError that lists the legal ones.
using Options = std::map<std::string, std::string>;

}  // namespace saccade::models
