// Parses OPTION=VALUE on a program's command line.
#pragma once

#include <stdexcept>
#include <string>

#include "models/api/options.h"

namespace saccade::models {

// Parses argv[first] and all arguments after it. Throws a std::runtime_error that names an argument of
// another form.
inline Options OptionArguments(int argc, char** argv, int first) {
  Options options;
  for (int i = first; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    if (equals == std::string::npos) throw std::runtime_error(option + ": expected OPTION=VALUE");
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return options;
}

}  // namespace saccade::models
