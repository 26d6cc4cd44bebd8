// A network's options as written in the model repository's configuration: names and values as text.
#pragma once

#include <map>
#include <string>

namespace saccade::models {

// Each architecture defines its own names and values; any other causes a LoadError that lists the legal ones.
using Options = std::map<std::string, std::string>;

}  // namespace saccade::models
