// What an exception of LibTorch's tells whoever reads an answer or a log.
#pragma once

#include <exception>
#include <string>

namespace saccade::models {

// Without the C++ stack, cut where it becomes long, and UTF-8.
std::string Said(const std::exception& error);

}  // namespace saccade::models
