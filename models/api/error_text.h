// The text of an exception from LibTorch, for a response or a log.
#pragma once

#include <exception>
#include <string>

namespace saccade::models {

// Returns the text as UTF-8 without the C++ stack, truncated if it is long.
std::string ErrorText(const std::exception& error);

}  // namespace saccade::models
