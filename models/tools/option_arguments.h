// Parses OPTION=VALUE and --gpu N on a program's command line.
#pragma once

#include <charconv>
#include <optional>
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

// Returns the number that `text` is, or nullopt if it is anything but digits.
inline std::optional<int> WholeNumber(const std::string& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// If argv[i] is "--gpu", returns the number after it and moves `i` past both; otherwise nullopt. Throws a
// std::runtime_error if no number of a GPU follows.
inline std::optional<int> GpuArgument(int argc, char** argv, int& i) {
  if (i >= argc || std::string(argv[i]) != "--gpu") return std::nullopt;
  const std::string text = i + 1 < argc ? argv[i + 1] : "";
  const std::optional<int> gpu = WholeNumber(text);
  if (!gpu) {
    throw std::runtime_error("--gpu " + text +
                             ": expected the number of a GPU, 0 for the first; leave it out for the CPU");
  }
  i += 2;
  return gpu;
}

}  // namespace saccade::models
